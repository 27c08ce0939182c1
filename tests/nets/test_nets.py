"""The networks: the fold is exact, costs are those of the paper, masks hide, states carry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from net_samples import ATTENTIVE, random_inputs, random_model, random_net

from gait.errors import GaitError
from gait.nets import architecture_of
from gait.nets.architecture import shapes_of
from gait.nets.autograd import gru
from gait.nets.build import network_of
from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters, self_attention_multiply_adds
from gait.nets.gait import GaitNet
from gait.nets.nmn import NmnNet
from gait.nets.parts import parts_of
from gait.reference.network import NumpyNetwork

pytestmark = pytest.mark.usefixtures("one_thread")


def random_keep(net: GaitNet, batch: int, steps: int) -> torch.Tensor:
    a = net.architecture
    return torch.rand(batch, steps, a.history, len(a.tokens), generator=torch.Generator().manual_seed(2)) > 0.2


def assert_same(ours: torch.Tensor, theirs: torch.Tensor, atol: float = 1e-5) -> None:
    assert ours.shape == theirs.shape
    assert ((ours - theirs).abs() < atol).all()


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
def test_the_fold_is_exact(variant: dict[str, Any], masked: bool) -> None:
    net = random_net(**variant)
    assert isinstance(net, GaitNet)
    inputs = random_inputs(net.architecture, 3, 40)
    keep = random_keep(net, 3, 40) if masked else None
    plain, folded = net.plain(inputs, keep=keep), net.run(inputs, keep=keep)
    assert plain.log_std is not None and folded.log_std is not None
    # Otherwise a network that says the same whatever it sees would pass.
    assert plain.velocity.std() > 0.05 and plain.log_std.std() > 0.05
    assert_same(folded.velocity, plain.velocity)
    assert_same(folded.log_std, plain.log_std)
    for ours, theirs in zip(folded.state, plain.state, strict=True):
        assert_same(ours.float(), theirs.float())


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_the_fold_has_the_same_gradient(variant: dict[str, Any]) -> None:
    net = random_net(**variant).double()
    assert isinstance(net, GaitNet)
    inputs, keep = random_inputs(net.architecture, 2, 25).double(), random_keep(net, 2, 25)
    start = net.start(2)
    state = start._replace(hidden=start.hidden.double(), history=start.history.double())
    gradients = []
    for outputs in (net.plain(inputs, state, keep), net.run(inputs, state, keep)):
        assert outputs.log_std is not None
        loss = (outputs.velocity.sin() + outputs.log_std.cos()).sum()
        gradients.append(torch.autograd.grad(loss, list(net.parameters())))
    for name, plain, folded in zip(dict(net.named_parameters()), *gradients, strict=True):
        assert plain.abs().max() > 0.0 or variant.get("history") == 1, name
        assert_same(folded, plain, atol=1e-9 * max(1.0, float(plain.abs().max())))


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_the_numpy_fold_steps_like_the_plain_network(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    net = network_of(model)
    assert isinstance(net, GaitNet)
    inputs = random_inputs(net.architecture, 1, 30)
    with torch.no_grad():
        plain = net.plain(inputs)
    network = NumpyNetwork(model)
    velocity, log_std = map(np.array, zip(*(network.step(x) for x in inputs[0].double().numpy()), strict=True))
    assert plain.log_std is not None
    assert np.abs(velocity - plain.velocity[0].numpy()).max() < 1e-5
    assert np.abs(log_std - plain.log_std[0].numpy()).max() < 1e-5


def test_a_fold_needs_legs_that_share_their_normaliser() -> None:
    model = random_model()
    std = np.array(model.weights["std"])
    std[9] *= 1.5
    with pytest.raises(GaitError, match="share their normaliser"):
        parts_of(replace(model, weights={**model.weights, "std": std}))


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_a_sequence_may_be_cut_anywhere(kind: str) -> None:
    net = random_net(kind)
    inputs = random_inputs(net.architecture, 2, 30)
    with torch.no_grad():
        velocity, log_std, _ = net(inputs)
        parts, state = [], None
        for part in (inputs[:, :1], inputs[:, 1:5], inputs[:, 5:12], inputs[:, 12:]):
            outputs = net.run(part, state)
            parts.append(outputs)
            state = outputs.state
    assert_same(torch.cat([part.velocity for part in parts], 1), velocity)
    assert_same(torch.cat([part.log_std for part in parts if part.log_std is not None], 1), log_std)


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_velocity_alone_is_the_same_velocity(kind: str) -> None:
    net = random_net(kind)
    inputs = random_inputs(net.architecture, 2, 20)
    both, alone = net.run(inputs), net.run(inputs, uncertain=False)
    assert alone.log_std is None
    assert_same(alone.velocity, both.velocity, atol=1e-6)


def test_nmn_is_torchs_own_gru() -> None:
    net = random_net("nmn", hidden=32, mlp=16)
    assert isinstance(net, NmnNet)
    inputs = random_inputs(net.architecture, 3, 40)
    ours, plain = net.run(inputs), net.plain(inputs)
    assert (
        ours.log_std is not None
        and plain.log_std is not None
        and ours.contact is not None
        and plain.contact is not None
    )
    assert_same(ours.velocity, plain.velocity)
    assert_same(ours.log_std, plain.log_std)
    assert_same(ours.contact, plain.contact)
    assert ours.contact.shape == (3, 40, 4)


def test_the_gru_passes_gradcheck() -> None:
    torch.manual_seed(0)
    modules = [torch.nn.GRU(5, 4, batch_first=True).double() for _ in range(2)]
    gates = torch.randn(6, 2, 12, 3, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    weights = [p for module in modules for p in (module.weight_hh_l0, module.bias_hh_l0)]
    assert torch.autograd.gradcheck(lambda *args: gru(args[0], args[1], modules), (gates, hidden, *weights))


def test_attention_is_a_distribution_and_sees_no_missing_history() -> None:
    net = random_net("gait")
    assert isinstance(net, GaitNet)
    with torch.no_grad():
        weights = net.attention(random_inputs(net.architecture, 2, 12))
    assert weights.shape == (2, 12, 2, 2, 7, 6)
    assert_same(weights.sum((4, 5)), torch.ones(2, 12, 2, 2))
    assert (weights[:, 0, :, :, :-1] == 0.0).all()
    assert (weights[:, 3, :, :, :3] == 0.0).all() and (weights[:, 3, :, :, 3:] > 0.0).all()


def test_a_masked_token_is_not_seen() -> None:
    net = random_net("gait")
    assert isinstance(net, GaitNet)
    inputs = random_inputs(net.architecture, 1, 20)
    keep = torch.ones(1, 20, 7, 6, dtype=torch.bool)
    keep[..., 4] = False
    changed = inputs.clone()
    changed[..., [*net.architecture.tokens[4].columns]] += 3.0
    assert_same(net.run(changed, keep=keep).velocity, net.run(inputs, keep=keep).velocity, atol=1e-7)
    assert (net.run(changed).velocity - net.run(inputs).velocity).abs().max() > 1e-3


def test_a_window_with_nothing_to_see_is_finite() -> None:
    net = random_net("gait")
    outputs = net.run(random_inputs(net.architecture, 1, 20), keep=torch.zeros(1, 20, 7, 6, dtype=torch.bool))
    assert torch.isfinite(outputs.velocity).all()


def test_legs_share_an_embedding_and_differ_by_position() -> None:
    net = random_net("gait")
    assert isinstance(net, GaitNet)
    assert set(net.embed) == {"gyro", "accel", "leg"}
    inputs = random_inputs(net.architecture, 1, 10)
    swapped = inputs.clone()
    one, two = [list(token.columns) for token in net.architecture.tokens[2:4]]
    swapped[..., one], swapped[..., two] = inputs[..., two], inputs[..., one]
    assert (net.run(swapped).velocity - net.run(inputs).velocity).abs().max() > 1e-3
    with torch.no_grad():
        net.token_position[2:] = net.token_position[2]
        mean, std = net.mean.clone(), net.std.clone()
    assert (mean[one] == mean[two]).all() and (std[one] == std[two]).all()
    assert_same(net.run(swapped).velocity, net.run(inputs).velocity)


def test_the_log_std_stays_in_its_bounds() -> None:
    net = random_net("gait", log_std_min=-3.0, log_std_max=-1.0)
    _, log_std, _ = net(1e3 * random_inputs(net.architecture, 2, 20))
    assert log_std.min() >= -3.0 and log_std.max() <= -1.0


def test_multiply_adds_are_those_of_the_paper() -> None:
    gait = architecture_of({"kind": "gait"})
    # Embeddings; keys and values of six tokens; scores and sums over 42 tokens; projection; two GRUs; two MLPs.
    by_hand = 42 * 32 + 6 * 2 * 32 * 64 + 2 * 2 * 42 * 64 + 2 * 64 * 32 + 2 * 192 * (128 + 64) + 2 * (64 * 64 + 64 * 3)
    assert multiply_adds(gait) == by_hand == 123_072
    assert round(multiply_adds(gait) / 1e6, 2) == 0.12
    assert round(self_attention_multiply_adds(gait) / multiply_adds(gait), 1) == 2.8
    assert round(multiply_adds(architecture_of({"kind": "nmn"})) / multiply_adds(gait), 1) == 3.3
    assert 78_000 < folded_multiply_adds(gait) < 82_000
    assert multiply_adds(architecture_of({"kind": "gait", "targets": False})) == by_hand - 12 * 32
    with pytest.raises(GaitError, match="no attention"):
        self_attention_multiply_adds(architecture_of({"kind": "nmn"}))


@pytest.mark.parametrize("variant", [*ATTENTIVE, {"kind": "nmn"}, {"kind": "nmn", "legs": 2}], ids=str)
def test_shapes_and_parameters_are_those_of_the_network(variant: dict[str, Any]) -> None:
    net = random_net(**variant)
    assert {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()} == shapes_of(net.architecture)
    assert parameters(net.architecture) == sum(p.numel() for p in net.parameters())


def test_unknown_networks_and_sizes_are_refused() -> None:
    with pytest.raises(GaitError, match="choose one of gait, gait-flat, nmn"):
        architecture_of({"kind": "lstm"})
    with pytest.raises(GaitError, match="nmn has no 'latents'"):
        architecture_of({"kind": "nmn", "latents": 2})
    with pytest.raises(GaitError, match="width is 0"):
        architecture_of({"kind": "gait", "width": 0})
