"""mouse3d: the architecture of Mouse3DCNN (prj_mouse_pain), to compare with: four dense 3x3x3 convolutions, each
followed by max pooling, the first at full resolution.

1.43 million parameters. Most of its operations are in the second convolution, at half resolution.

Legend: B clips, T frames, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from ranks.workloads.video_behavior.net.layers import ClipNorm, VideoConv3d

CHANNELS = (32, 64, 128, 256)
HIDDEN = (512, 256)
DROPOUT = 0.5


class Mouse3DNet(nn.Module):
    """Logits [B, classes] of the centre frames of clips [B, T, H, W] with grey values from 0 to 1.

    `classes`, `multi`, `clip`: as for R2Plus1DNet. `norm`: "batch" as in the origin, or "group", which --exact accepts.
    T is 8 or more, H and W are 16 or more.
    """

    def __init__(self, classes: Sequence[str], multi: bool, clip: Sequence[int], norm: str) -> None:
        super().__init__()
        self.classes, self.multi, self.clip, self.norm = list(classes), multi, list(clip), norm
        layers: list[nn.Module] = []
        channels = 1
        for number, out in enumerate(CHANNELS):
            layers.append(VideoConv3d(channels, out, (3, 3, 3), (1, 1, 1), (1, 1, 1)))
            layers += [nn.BatchNorm3d(out) if norm == "batch" else ClipNorm(out), nn.ReLU()]
            layers.append(nn.MaxPool3d((2 if number else 1, 2, 2)))
            channels = out
        self.layers = nn.Sequential(*layers)
        sizes = (channels, *HIDDEN)
        hidden = [(nn.Linear(a, b), nn.ReLU(), nn.Dropout(DROPOUT)) for a, b in zip(sizes, HIDDEN, strict=False)]
        self.hidden = nn.Sequential(*(layer for layers in hidden for layer in layers))
        self.out = nn.Linear(HIDDEN[-1], len(classes))

    def forward(self, clips_BTHW: Tensor) -> Tensor:
        return self.out(self.hidden(self.layers(clips_BTHW[:, None]).mean((2, 3, 4))))
