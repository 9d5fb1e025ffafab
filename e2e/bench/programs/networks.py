"""Networks that serve requests, without packages besides PyTorch: ResNet-50, and a small Llama that generates tokens. Their
weights are random; what a GPU does with them is the same."""

import torch
from torch import nn
from torch.nn import functional as F

RESNET_LAYERS = ((64, 3), (128, 4), (256, 6), (512, 3))  # channels within a block, blocks
EXPANSION = 4
BATCH, PIXELS = 8, 224


class Bottleneck(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        after = EXPANSION * channels
        self.first, self.first_norm = nn.Conv2d(before, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.third, self.third_norm = nn.Conv2d(channels, after, 1, bias=False), nn.BatchNorm2d(after)
        self.past = nn.Identity()
        if stride != 1 or before != after:
            self.past = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = F.relu(self.first_norm(self.first(x)))
        y = F.relu(self.second_norm(self.second(y)))
        return F.relu(self.third_norm(self.third(y)) + self.past(x))


def resnet50(n=BATCH):
    """The model and a batch of @n pictures for it, in half precision."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for i, (channels, blocks) in enumerate(RESNET_LAYERS):
        for block in range(blocks):
            layers.append(Bottleneck(before, channels, 2 if i and not block else 1))
            before = EXPANSION * channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000)]
    model = nn.Sequential(*layers).eval().half().cuda().to(memory_format=torch.channels_last)
    batch = torch.randn(n, 3, PIXELS, PIXELS).half().cuda().to(memory_format=torch.channels_last)
    return model, batch


WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, WORDS = 2048, 5632, 16, 16, 8, 32000
HEAD = WIDTH // HEADS
PROMPT, NEW = 512, 8  # tokens


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = Norm(), Norm()
        self.query, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDTH, KEY_HEADS * HEAD, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x, cos, sin, cache):
        """@cache: the keys and values of tokens before, or None. Returns (x, cache)."""
        y, (batch, length, _) = self.before(x), x.shape
        query = rotated(self.query(y).view(batch, length, HEADS, HEAD).transpose(1, 2), cos, sin)
        key = rotated(self.key(y).view(batch, length, KEY_HEADS, HEAD).transpose(1, 2), cos, sin)
        value = self.value(y).view(batch, length, KEY_HEADS, HEAD).transpose(1, 2)
        if cache:
            key, value = torch.cat((cache[0], key), 2), torch.cat((cache[1], value), 2)
        keys, values = (some.repeat_interleave(HEADS // KEY_HEADS, 1) for some in (key, value))
        y = F.scaled_dot_product_attention(query, keys, values, is_causal=length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), (key, value)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers = nn.Embedding(WORDS, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = Norm(), nn.Linear(WIDTH, WORDS, bias=False)

    def prepare(self):
        """Angles of each place, for tokens of the prompt and new ones."""
        places = torch.arange(PROMPT + NEW, device="cuda").float()
        angles = torch.outer(places, 1e4 ** (-torch.arange(0, HEAD, 2, device="cuda").float() / HEAD)).repeat(1, 2)
        dtype = self.head.weight.dtype
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def step(self, tokens, at, caches):
        x, length = self.words(tokens), tokens.shape[1]
        cos, sin = self.cos[at : at + length], self.sin[at : at + length]
        found = []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cos, sin, cache)
            found.append(cache)
        return self.head(self.norm(x[:, -1:])).argmax(-1), found

    def generate(self, prompt):
        """The NEW tokens that are most likely."""
        token, caches = self.step(prompt, 0, [None] * LAYERS)
        tokens = [token]
        while len(tokens) < NEW:
            token, caches = self.step(token, PROMPT + len(tokens) - 1, caches)
            tokens.append(token)
        return torch.cat(tokens, 1)


def llama():
    """The model and a prompt for it."""
    model = Llama().to(torch.bfloat16).cuda().eval()
    model.prepare()
    return model, torch.randint(0, WORDS, (1, PROMPT)).cuda()
