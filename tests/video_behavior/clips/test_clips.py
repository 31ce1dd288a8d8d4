"""Which clips an update learns from, and how they are cut. Legend: B clips, T frames, C classes, K bouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ranks import RunConfig, UserError, World
from ranks.workloads.video_behavior.annotations.frame_labels import IGNORED
from ranks.workloads.video_behavior.clips import cut
from ranks.workloads.video_behavior.clips.balance import class_balance, study_lines
from ranks.workloads.video_behavior.clips.cut import ClipCutter, ClipReader
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, split_bouts
from ranks.workloads.video_behavior.clips.stream import ClipBatch, ClipStream, bout_probabilities
from ranks.workloads.video_behavior.config import AugmentConfig, ClipConfig, Config
from tests.video_behavior.example_frames import CLASSES, CPU, SMALL, example_frames, pixels_of, world_of


def clip_stream(cfg: Config, rank: int = 0, size: int = 1, data: LabelledFrames | None = None) -> ClipStream:
    config = RunConfig(seed=5, shards=8)
    return ClipStream(ClipCutter(data or example_frames(), cfg.clips, CPU), cfg, world_of(rank, size, config))


def augmented(stream: ClipStream, iteration: int) -> ClipBatch:
    """All clips of an iteration that this rank carries."""
    batch = stream.at(iteration)
    return stream.augmented(batch.gather(batch.shards.ids))


@pytest.mark.parametrize("iteration", [0, 3, 4, 11])
def test_the_batch_is_a_pure_function_of_the_iteration_on_one_to_four_ranks(iteration: int) -> None:
    """Also with another micro-batch, and after other iterations."""
    whole = augmented(clip_stream(SMALL), iteration)
    for size in (2, 3, 4):
        parts = []
        for rank in range(size):
            stream = clip_stream(SMALL, rank, size)
            augmented(stream, 9)
            mine = stream.at(iteration)
            parts += [stream.augmented(mine.gather(micro.ids)) for micro in mine.split(max_cost=3)]
        assert torch.equal(torch.cat([part.label_BC for part in parts]), whole.label_BC)
        assert torch.equal(torch.cat([part.clips_BTHW for part in parts]), whole.clips_BTHW)


def test_workers_read_the_clips_that_the_rank_would_read() -> None:
    """In another order of iterations too: a resume, and an epoch that begins."""
    cfg = replace(SMALL, workers=3)
    world = World.join(RunConfig(seed=5, shards=8, threads=1), device="cpu", workload="test")
    try:
        ahead, alone = ClipStream(ClipCutter(example_frames(), cfg.clips, CPU), cfg, world), clip_stream(SMALL)
        for iteration in (2, 3, 4, 5, 1):
            found, expected = augmented(ahead, iteration), augmented(alone, iteration)
            assert torch.equal(found.clips_BTHW, expected.clips_BTHW)
            assert torch.equal(found.label_BC, expected.label_BC)
    finally:
        world.leave()


def test_shuffled_clips_keep_their_frames_and_the_labelled_one_in_the_centre() -> None:
    data, clips, frame_B = example_frames(), replace(SMALL.clips, frames=9), torch.arange(20, 60)
    straight = ClipCutter(data, clips, CPU).reader.read(frame_B, frame_B).frame_BT
    reader = ClipCutter(data, replace(clips, shuffle=True), CPU).reader
    shuffled = reader.read(frame_B, frame_B).frame_BT
    assert torch.equal(shuffled[:, 4], frame_B)
    assert torch.equal(shuffled.sort(1).values, straight.sort(1).values)
    orders = {tuple(row) for row in (shuffled - frame_B[:, None]).tolist()}
    assert len(orders) > 30, "each clip has an order of its own"
    assert torch.equal(reader.read(frame_B[7:9], frame_B[7:9]).frame_BT, shuffled[7:9]), "whatever else is read"
    assert not torch.equal(reader.read(frame_B, frame_B, key=1).frame_BT, shuffled)


def test_another_iteration_or_seed_gives_other_clips() -> None:
    stream, cfg = clip_stream(SMALL), RunConfig(seed=6)
    other = ClipStream(ClipCutter(example_frames(), SMALL.clips, CPU), SMALL, world_of(config=cfg))
    batches = [augmented(each, iteration) for each in (stream, other) for iteration in range(9)]
    assert len({batch.clips_BTHW.sum().item() for batch in batches}) == len(batches)


def test_each_epoch_samples_each_class_by_its_share_less_than_two_clips_away() -> None:
    stream = clip_stream(replace(SMALL, epoch_clips=640))
    for epoch in range(3):
        frames = stream.clips.frames_of(torch.arange(640), key=epoch).numpy()
        found_C = np.bincount(stream.cutter.data.class_N[frames], minlength=3)
        np.testing.assert_allclose(found_C, 640 * stream.balance.sampled_C, rtol=0, atol=2)
        assert set(frames) <= set(stream.cutter.data.frames_of("train").tolist())


def test_bouts_count_by_their_length_to_a_power() -> None:
    bouts = split_bouts(example_frames(), "train")
    balance = class_balance(bouts, CLASSES, "balanced", 1.0)
    for power in (0.0, 0.5, 1.0):
        chance_K = bout_probabilities(bouts, balance, power)
        for each in range(3):
            chosen_K = bouts.class_K == each
            assert chance_K[chosen_K].sum() == pytest.approx(1 / 3)
            ratio_K = chance_K[chosen_K] / bouts.length_K[chosen_K] ** power
            np.testing.assert_allclose(ratio_K, ratio_K[0])


def test_bouts_are_runs_of_equal_labels_within_a_video() -> None:
    data = example_frames()
    bouts = split_bouts(data, "test")
    assert bouts.length_K.sum() == len(data.frames_of("test"))
    for label, first, length in zip(bouts.class_K, bouts.first_K, bouts.length_K, strict=True):
        assert (data.class_N[first : first + length] == label).all()
        assert len(set(data.video_N[first : first + length])) == 1


def test_only_one_way_makes_up_for_rare_classes_and_only_the_training_split_counts() -> None:
    data = example_frames()
    bouts = split_bouts(data, "train")
    train_N = data.class_N[data.frames_of("train")]
    share_C = np.bincount(train_N, minlength=3) / len(train_N)
    ways = {way: class_balance(bouts, CLASSES, way, 0.5) for way in ("balanced", "weights", "logit-adjustment", "none")}
    for way, found in ways.items():
        np.testing.assert_allclose(found.share_C, share_C)
        changed = (
            not np.allclose(found.sampled_C, share_C),
            not np.allclose(found.weight_C, 1),
            not np.allclose(found.offset_C, 0),
        )
        assert sum(changed) == (way != "none"), way
        assert (found.sampled_C * found.weight_C).sum() == pytest.approx(1)
    np.testing.assert_allclose(class_balance(bouts, CLASSES, "balanced", 1.0).sampled_C, 1 / 3)
    np.testing.assert_allclose(ways["logit-adjustment"].offset_C, 0.5 * np.log(share_C))
    for way, found in ways.items():  # all three teach the net the same shares
        learned_C = share_C if way == "none" else np.sqrt(share_C) / np.sqrt(share_C).sum()
        np.testing.assert_allclose(found.prior_C, learned_C)


def test_a_class_without_training_frames_is_refused() -> None:
    with pytest.raises(UserError, match="shows jump"):
        class_balance(split_bouts(example_frames(), "train"), (*CLASSES, "jump"), "balanced", 0.5)


def test_a_clip_is_the_frames_around_its_centre_and_repeats_the_edges_of_its_video() -> None:
    data = example_frames()
    for clips in (ClipConfig(frames=5, size=16), ClipConfig(frames=7, stride=3, size=16)):
        first, last = data.bounds_V2[2].tolist()
        centres = torch.tensor([first, first + 1, first + 20, last - 2, last])
        cut = ClipCutter(data, clips, CPU).cut(centres, torch.arange(5))
        for number, centre in enumerate(centres.tolist()):
            reach = clips.frames // 2
            frames = [min(max(centre + clips.stride * t, first), last) for t in range(-reach, reach + 1)]
            np.testing.assert_array_equal(cut.clips_BTHW[number].numpy(), pixels_of(data.store)[frames])
        np.testing.assert_array_equal(cut.label_BC.numpy(), data.label_NC[centres.numpy()])


def test_a_store_in_memory_gives_the_clips_of_the_memory_map() -> None:
    data, ids = example_frames(), torch.arange(8)
    frames, shift = torch.tensor([0, 5, 60, 100, 47, 48, 200, 130]), torch.tensor([1, -1, 0, 1, 1, -1, 0, 0])
    mapped, resident = (
        ClipCutter(data, SMALL.clips, CPU, resident).cut(frames, ids, shift) for resident in (False, True)
    )
    assert torch.equal(mapped.clips_BTHW, resident.clips_BTHW)
    assert torch.equal(mapped.label_BC, resident.label_BC)


def test_a_reader_unmaps_the_store_after_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    data, clips = example_frames(), ClipConfig(frames=5, size=16)
    unmapped = list[int]()
    monkeypatch.setattr(type(data.store), "unmap", lambda _: unmapped.append(1))
    monkeypatch.setattr(cut, "MAPPED_BYTES", 4 * 5 * 16 * 16)
    reader = ClipReader(data, clips, pixels=True, pinned=False)
    for _ in range(10):
        reader.read(torch.arange(3), torch.arange(3))
    assert len(unmapped) == 5, "after two reads of three clips each"


def test_ignored_frames_are_never_sampled() -> None:
    data = example_frames()
    label_NC = data.label_NC.copy()
    label_NC[::3] = 0
    data = replace(data, label_NC=label_NC)
    assert (data.class_N[::3] == IGNORED).all()
    stream = clip_stream(SMALL, data=data)
    assert (data.class_N[stream.clips.frames_of(torch.arange(64), key=1).numpy()] != IGNORED).all()
    assert not set(data.frames_of("val")) & set(range(0, len(label_NC), 3))


def test_overlapping_behaviours_are_sampled_with_frames_that_show_none() -> None:
    data = example_frames(multi=True)
    stream = clip_stream(replace(SMALL, imbalance_power=1.0, augment=AugmentConfig(flips=False)), data=data)
    label_BC = data.label_NC[stream.clips.frames_of(torch.arange(64), key=1).numpy()]
    assert {int(number) for number in label_BC.sum(1)} == {0, 1, 2}
    assert len(stream.balance.share_C) == 3


def test_the_table_of_classes_counts_every_split() -> None:
    data = example_frames()
    stream = clip_stream(SMALL)
    lines = study_lines(data, stream.balance)
    assert lines[0].startswith("train  3 videos (3 trials) of 3 animals, ")
    assert [line.split()[0] for line in lines[3:]] == ["class", *CLASSES]
    move = lines[5].replace(",", "").split()
    expected = [int((data.class_N[data.frames_of(split)] == 1).sum()) for split in ("train", "val", "test")]
    assert [int(number) for number in move[1:4]] == expected


def test_the_identity_of_the_data_has_its_labels_and_splits() -> None:
    data = example_frames()
    label_NC = data.label_NC.copy()
    label_NC[0] = label_NC[0, ::-1]
    others = [
        replace(data, label_NC=label_NC),
        data.with_splits(["train"] * 6),
        replace(data, store_sha256="1" * 64),
    ]
    assert len({data.sha256, *(other.sha256 for other in others)}) == 4
