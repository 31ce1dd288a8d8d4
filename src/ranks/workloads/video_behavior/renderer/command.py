"""The command `ranks video-behavior render`: write the built-in study."""

from __future__ import annotations

from pathlib import Path

from ranks.errors import UserError


def render(
    folder: Path,
    /,
    *,
    seed: int = 0,
    animals: int = 40,
    seconds: float = 360.0,
    size: int = 64,
    contrast: float = 1.0,
    noise: float = 1.0,
    workers: int | None = None,
) -> int:
    """Render videos of a mouse from below, with BORIS files and a dataset.csv, to try the workload.

    Args:
        folder: Where the study goes; a finished one is kept.
        seed: Another seed is another study.
        animals: Three fifths train, a fifth validates, a fifth tests.
        seconds: Length of the video of each animal.
        size: Height and width in pixels, an even number.
        contrast: Factor of the cameras' contrast; 0.5 is half of it.
        noise: Factor of the cameras' noise.
        workers: Processes; by default one for each core.
    """
    if animals < 5 or not 10 <= seconds <= 36_000 or not 16 <= size <= 1024 or size % 2 or seed < 0:
        asked = f"--animals {animals} --seconds {seconds:g} --size {size} --seed {seed}"
        found = "a study has 5 animals or more, of 10 to 36,000 seconds, and an even size from 16 to 1,024"
        raise UserError(asked, found, "change them")
    if not 0 < contrast <= 4 or not 0 <= noise <= 20:
        raise UserError(
            f"--contrast {contrast:g} --noise {noise:g}", "contrast is above 0, up to 4; noise 0 to 20", "change them"
        )
    from ranks.workloads.video_behavior.renderer.render import StudyPlan
    from ranks.workloads.video_behavior.renderer.rendered_study import render_study

    found = render_study(StudyPlan(animals, seconds, seed, size, contrast, noise), folder, workers)
    bouts = ", ".join(f"{name} {count}" for name, count in found["bouts_of_test_animals"].items())
    print(f"{folder}/dataset.csv: {animals} animals, {seconds:g} s each; bouts of the test animals: {bouts}")
    print(f"frames sha256 {found['frames_sha256']}, renderer sha256 {found['renderer_sha256']}")
    return 0
