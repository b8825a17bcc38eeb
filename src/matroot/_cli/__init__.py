"""The command line: ``main`` parses, and every command is a module that is imported when it is called."""
