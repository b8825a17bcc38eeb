"""One frame of every segment."""

from hypothesis import given, settings
from hypothesis import strategies as st

from matroot.train.data.seeding import generator_for
from matroot.train.data.segments import middle_frames, random_frames


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 400), st.integers(1, 16), st.integers(0, 5))
def test_frames_are_of_their_segments(available, wanted, seed):
    for frames in (middle_frames(available, wanted), random_frames(available, wanted, generator_for(seed))):
        assert len(frames) == wanted
        for segment, frame in enumerate(frames):
            assert segment * available // wanted <= frame <= (segment + 1) * available // wanted
        assert 0 <= min(frames) <= max(frames) < available


def test_middles():
    assert middle_frames(8, 8) == list(range(8))
    assert middle_frames(16, 8) == [1, 3, 5, 7, 9, 11, 13, 15]
    assert middle_frames(2, 4) == [0, 0, 1, 1]
