"""``matroot stylize``: what it writes, what it refuses, and that one bad photo does not stop the others."""

import os
from pathlib import Path

import pytest
import torch

from matroot._cli import main
from matroot._cli.stylize import plan
from matroot.style import StyleNetwork, load, save, stylize
from matroot.style.images import read, write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with photos one.png and two.jpg, paintings monet.png and hokusai.png, and weights net."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    write("one.png", torch.rand(3, 20, 30))
    write("two.jpg", torch.rand(3, 40, 24))
    write("monet.png", torch.rand(3, 24, 24) ** 2)
    write("hokusai.png", torch.rand(3, 24, 24).sqrt())
    network = StyleNetwork((4, 4, 4))
    torch.nn.init.normal_(network.painter[-1].weight)
    save(network, "net")
    return tmp_path


def call(*arguments: str) -> int:
    return main.main(["stylize", *arguments, "--network", "net"])


def files(folder) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def expected(photo: str, *paintings: str, **options) -> torch.Tensor:
    picture = stylize(read(photo), [read(each) for each in paintings], network=load("net"), **options)
    return (picture * 255).round() / 255


def test_one_photo(folder, capsys):
    assert call("one.png", "--style", "monet.png", "-o", "result.png") == 0
    torch.testing.assert_close(read("result.png"), expected("one.png", "monet.png"))
    out, err = capsys.readouterr()
    assert out.startswith("result.png  30 x 20  ")
    assert err == ""


def test_names_of_results(folder):
    before = files(folder)
    assert call("one.png", "two.jpg", "--style", "monet.png") == 0
    assert files(folder) - before == {"one-monet.png", "two-monet.jpg"}
    assert call("one.png", "two.jpg", "--style", "monet.png", "hokusai.png", "--out", "a/b") == 0
    assert files(folder) - before == {"one-monet.png", "two-monet.jpg", "a/b/one-blend.png", "a/b/two-blend.jpg"}


def test_a_format_that_is_not_written_becomes_png(folder):
    (folder / "one.png").rename("one.bmp")
    assert call("one.bmp", "--style", "monet.png") == 0
    assert (folder / "one-monet.png").exists()


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--strength", "0.5"], {"strength": 0.5}),
        (["--strength", "0"], {"strength": 0.0}),
        (["--keep-colors"], {"keep_colors": True}),
        (["--max-size", "12"], {"max_size": 12}),
        (["--style-size", "10"], {"style_size": 10}),
        (["--tile", "8"], {}),
        (["--method", "eigen"], {}),
        (["--transform", "whitening"], {"transform": "whitening"}),
        (["--grain", "0"], {"grain": 0.0}),
        (["--scales", "2"], {"scales": 2}),
        (["--method", "mtp-lya"], {"method": "taylor"}),
        (["--device", "cpu"], {}),
    ],
)
def test_options_are_those_of_the_function(folder, options, arguments):
    assert call("one.png", "--style", "monet.png", "-o", "result.png", *options) == 0
    difference = read("result.png") - expected("one.png", "monet.png", **arguments)
    # Tiles and other methods may round a level the other way.
    assert difference.abs().max() < 1.1 / 255


def test_weights(folder):
    both = "monet.png", "hokusai.png"
    assert call("one.png", "--style", *both, "--weights", "1", "3", "-o", "result.png") == 0
    torch.testing.assert_close(read("result.png"), expected("one.png", *both, weights=[1, 3]))
    assert call("one.png", "--style", both[0], "--style", both[1], "-o", "result.png") == 0
    torch.testing.assert_close(read("result.png"), expected("one.png", *both))


def test_half_precision(folder):
    assert call("one.png", "--style", "monet.png", "-o", "result.png", "--half") == 0
    difference = read("result.png") - expected("one.png", "monet.png")
    # In bfloat16: a few levels at most on average.
    assert 0 < difference.abs().mean() < 3 / 255


def test_one_bad_photo_does_not_stop_the_others(folder, capsys):
    (folder / "bad.png").write_bytes(b"no image")
    assert call("none.jpg", "one.png", "bad.png", "two.jpg", "--style", "monet.png", "--out", "results") == 1
    assert {name for name in files(folder) if name.startswith("results")} == {
        "results/one-monet.png",
        "results/two-monet.jpg",
    }
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "cannot read none.jpg: No such file or directory"
    assert err[1].startswith("bad.png is no image of a known format")
    assert err[2] == "2 of 4 photos failed"


def test_a_bar_takes_no_line_of_standard_output(folder, capsys, monkeypatch):
    """On a terminal, while standard output may be a file."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert call("one.png", "none.png", "two.jpg", "--style", "monet.png") == 1
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["one-monet.png", "two-monet.jpg"]
    assert "one.png, 1 of 3" in err
    assert "cannot read none.png: No such file or directory" in err


def test_plans_of_many_photos_ask_little(monkeypatch):
    """A few questions to the file system for each photo, not one for every pair of a photo and a result."""
    asked, stat = [], os.stat
    monkeypatch.setattr(os, "stat", lambda path, **options: asked.append(path) or stat(path, **options))
    photos = [Path(f"{k}.png") for k in range(200)]
    assert len(plan(photos, [Path("monet.png")], None, Path("results"))) == 200
    assert len(asked) < 10 * len(photos)


def test_a_link_to_itself_is_a_photo_that_cannot_be_read(folder, capsys):
    os.symlink("loop.png", "loop.png")
    assert call("loop.png", "one.png", "--style", "monet.png") == 1
    assert (folder / "one-monet.png").exists()
    assert "cannot read loop.png: " in capsys.readouterr().err


def test_a_result_that_cannot_be_written_is_a_failure(folder, capsys, fill_disk):
    fill_disk()
    assert call("one.png", "--style", "monet.png") == 1
    assert "cannot write one-monet.png: No space left on device" in capsys.readouterr().err
    assert not (folder / "one-monet.png").exists()


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_out_of_memory_is_said(folder, capsys, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("matroot._cli.stylize.apply_style", fail)
    assert call("one.png", "--style", "monet.png") == 1
    assert "one.png: out of memory; a smaller --tile" in capsys.readouterr().err


def test_faults_of_the_program_are_not_hidden(folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a fault")

    monkeypatch.setattr("matroot._cli.stylize.apply_style", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        call("one.png", "--style", "monet.png")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one.png", "--style", "none.png"], "cannot read none.png: No such file"),
        (["one.png", "--style", "net"], "net is no image of a known format"),
        (["one.png", "two.jpg", "--style", "monet.png", "-o", "x.png"], "-o names the result of one photo"),
        (["one.png", "--style", "monet.png", "-o", "one.png"], "one.png is an input"),
        (["one.png", "--style", "monet.png", "-o", "./monet.png"], "monet.png is an input"),
        (["one.png", "--style", "monet.png", "-o", "link.png"], "link.png is an input"),
        (["one.png", "other/one.png", "--style", "monet.png"], "one.png and other/one.png would both be written"),
        (["one.png", "--style", "monet.png", "-o", "x.gif"], "expected a suffix of"),
        (["one.png", "--style", "monet.png", "-o", "folder"], "folder is a folder; -o names a file"),
        (["one.png", "--style", "monet.png", "-o", "folder.png"], "folder.png is a folder; -o names a file"),
        (["one.png", "--style", "monet.png", "--out", "net"], "cannot make the folder net"),
        (["one.png", "--style", "monet.png", "--strength", "2"], "--strength must be from 0 to 1, got 2.0"),
        (["one.png", "--style", "monet.png", "--grain", "-1"], "--grain must be at least 0, got -1.0"),
        (["one.png", "--style", "monet.png", "--scales", "0"], "--scales must be at least 1, got 0"),
        (["one.png", "--style", "monet.png", "--max-size", "0"], "--max-size must be at least 1, got 0"),
        (["one.png", "--style", "monet.png", "--tile", "-1"], "--tile must be at least 1, got -1"),
        (["one.png", "--style", "monet.png", "--max-pixels", "100"], "more than 100 pixels"),
        (["one.png", "--style", "monet.png", "--weights", "1", "2"], "one for each of 1 styles"),
        (["one.png", "--style", "monet.png", "--method", "nonsense"], "--method nonsense: unknown method"),
        (["one.png", "--style", "monet.png", "--method", "mpa-lia"], "unknown method; did you mean 'mpa-lya'? Valid"),
        (
            ["one.png", "--style", "monet.png", "--method", "pi"],
            "--method pi: has no inverse root; valid names are auto",
        ),
        (["one.png", "--style", "monet.png", "--device", "nonsense"], "--device nonsense cannot be used"),
        (["one.png", "--style", "monet.png", "--network", "none"], "there is no file none"),
        (["one.png", "--style", "monet.png", "--network", "one.png"], "one.png is no whole safetensors file"),
    ],
)
def test_calls_that_cannot_work(folder, capsys, arguments, message):
    os.link("one.png", "link.png")
    for name in ("folder", "folder.png"):
        (folder / name).mkdir()
    before = files(folder)
    # The last --network counts.
    assert main.main(["stylize", "--network", "net", *arguments]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert len(err.splitlines()) == 1
    assert out == ""
    assert "power-iteration" not in err
    assert files(folder) == before


@pytest.mark.parametrize(
    "arguments", [["one.png"], ["--style", "monet.png"], ["a", "--style", "b", "-o", "c", "--out", "d"]]
)
def test_wrong_calls(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["stylize", *arguments])
    assert stopped.value.code == 2
    assert "usage: matroot stylize PHOTO ... --style PAINTING ..." in capsys.readouterr().err


def test_defaults_are_those_of_the_library(monkeypatch):
    from matroot.style import grain, images, transfer, transforms

    arguments = main._parser().parse_args(["stylize", "a", "--style", "b"])
    assert (arguments.tile, arguments.style_size) == (transfer.TILE, transfer.STYLE_SIZE)
    assert arguments.max_pixels == images.MAX_PIXELS
    assert arguments.grain == grain.GRAIN
    assert transforms.transform_of(arguments.transform) == transforms.OptimalTransport()


def test_a_missing_package_is_named(monkeypatch, capsys):
    def absent(*_):
        raise ModuleNotFoundError("No module named 'PIL'", name="PIL")

    monkeypatch.setattr(main, "import_module", absent)
    assert main.main(["stylize", "a", "--style", "b"]) == 2
    assert capsys.readouterr().err == 'matroot stylize needs PIL: pip install "matroot[style]"\n'
