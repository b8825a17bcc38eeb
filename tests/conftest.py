"""The order of tests."""


def pytest_collection_modifyitems(items: list) -> None:
    """What takes minutes begins first, so that no process is left with it when the others have nothing to do."""
    items.sort(key=lambda item: getattr(item, "originalname", None) != "test_under_the_interpreter")
