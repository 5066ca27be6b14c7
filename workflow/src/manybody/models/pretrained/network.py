"""A language model of transformers' own classes behind the methods of `base.Model`.

Only what its output layer reads is asked of the library, so that |V| logits are computed for the
positions that are asked about alone. Output rows beyond |V|, which pad some models, are left out.
"""

import re
from pathlib import Path

import torch
import transformers
from safetensors import safe_open
from torch import Tensor

from manybody.data import own_tokenizer
from manybody.io.refusal import Refusal
from manybody.models.base import Model
from manybody.models.linear import accelerate_layers
from manybody.models.pretrained import WIDTH, layout, series

TOLERANCE = 1e-4  # relative difference of logits by two ways through the library
# Tensors of a layer, and of the norm behind the embedding.
OF_LAYER = re.compile(rf"\.\d+\.(?!.*{layout.TABLES})|(?i:\bembed\w*[._](layer_?)?norm)\.")
# Keys of config.json that say the most tokens of a sequence, by type of model.
POSITIONS = "max_position_embeddings", "n_positions", "max_seq_len", "context_length"
HIDDEN = ("intermediate_size", "n_inner")


class Pretrained(Model):
    """`library`, a model of transformers' own, whose config as a mapping is `config`.

    `special` are the numbers of tokens that are no text, `mask` that of the mask token.
    """

    def __init__(
        self,
        library: torch.nn.Module,
        vocabulary: int,
        length: int,
        objective: str,
        config: dict,
        special: list[int] = (),
        mask: int | None = None,
    ):
        super().__init__(
            "pretrained",
            vocabulary,
            length,
            objective=objective,
            config=config,
            special=list(special),
            mask=mask,
        )
        self.special, self.mask = tuple(special), mask
        self.library, self.output = library, library.get_output_embeddings()
        accelerate_layers(library)
        self._check_sizes()
        self._check_head()

    @property
    def activation_size(self) -> int:
        width = max(getattr(self.library.config, key, None) or 0 for key in (*WIDTH, *HIDDEN))
        rows = self.vocabulary if self.about.causal else max(3, self.vocabulary // self.length)
        return self.length * max(4 * width, rows)

    @property
    def feature_size(self) -> int:
        return self.output.in_features if self.direct else self.vocabulary

    @property
    def work_size(self) -> int:
        return 10 * self.length * max(self.feature_size, self.activation_size // self.length)

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Inputs of the output layer, (B, T, d), of tokens (B, T) with `mask` hidden."""
        if self.about.causal and mask is not None:
            raise ValueError(
                f"{self.about.display_name} predicts the next token and has no masked logits; "
                f"expected no mask; ask for next tokens, or take a masked model"
            )
        if not self.about.causal or tokens.shape[-1] > self.length:
            self.check_tokens(tokens)
        if mask is not None:
            tokens = tokens.masked_fill(mask, self.mask)
        return self._read(tokens)

    @property
    def readout(self) -> tuple[Tensor, Tensor | None] | None:
        if not self.direct:
            return None
        rows, bias = slice(self.vocabulary), self.output.bias
        return self.output.weight[rows], None if bias is None else bias[rows]

    def _read(self, tokens: Tensor) -> Tensor:
        extra = {"use_cache": False} if self.about.causal else {}
        logits = self.library(input_ids=tokens, **extra).logits
        return logits if self.direct else logits[..., : self.vocabulary]

    def _check_sizes(self) -> None:
        """`Refusal` where sequences of L tokens of a vocabulary of |V| do not fit."""
        inputs = len(self.library.get_input_embeddings().weight)
        outputs = len(self.output.weight)
        most = max([self.vocabulary - 1, *self.special, 0 if self.about.causal else self.mask or 0])
        if self.vocabulary > outputs or most >= inputs:
            raise Refusal(
                f"found a model of {min(inputs, outputs)} tokens, but the sequences are of |V| = "
                f"{self.vocabulary}, and the special tokens go up to {most}; expected no token "
                f"beyond the model's; save beside the weights the tokenizer that it was trained "
                f"with, without tokens that were added later (or name it in a config's source)",
                "weights",
            )
        check_positions(self.library.config.to_dict(), self.length)
        if not self.about.causal and self.mask is None:
            raise Refusal(
                f"found {self.about.display_name}, whose tokenizer has no mask token; expected "
                f"one, as a masked model hides tokens by it; save beside the weights the tokenizer "
                f"that the model was trained with (or name it in a config's source)",
                "weights",
            )

    @torch.no_grad()
    def _check_head(self) -> None:
        """Sets `direct`: whether the logits are the output layer of what it reads; where more
        follows, such as a bound, features are logits. `Refusal` where L tokens cannot be read."""
        self.direct = False
        self.library.eval()
        # Some models give padding no position, so that more tokens fit with it than without.
        pad = getattr(self.library.config, "pad_token_id", None)
        plain = sorted({*range(self.vocabulary)} - {*self.special, pad}) or [0]
        tokens = torch.tensor(plain)[torch.arange(self.length) % len(plain)][None]
        try:
            whole = self._read(tokens)
        except (IndexError, RuntimeError) as error:
            raise Refusal(
                f"found a model that cannot read {self.length} tokens, special ones included "
                f"({error}); expected it to read sequences of the source's length; lower that, or "
                f"cut the sequences: padding may have some of the positions that config.json says",
                "weights",
            ) from error
        if not isinstance(self.output, torch.nn.Linear):
            return
        self.output.forward, self.direct = torch.nn.Identity().forward, True
        try:
            apart = (self.head(self._read(tokens)) - whole).abs().max().item()
            self.direct = apart <= TOLERANCE * (1 + whole.abs().max().item())
        except RuntimeError:  # what follows expects |V| numbers
            self.direct = False
        if not self.direct:
            del self.output.forward

    @torch.no_grad()
    def check_objective(self, tokens: Tensor, origin: str) -> None:
        """`Refusal` unless what comes later acts as the objective says, seen on tokens (B, L): not
        on a causal model's logits, and on those of a masked token where what comes before does. And
        unless a sequence alone has the logits that it has among others."""
        causal, (count, length) = self.about.causal, tokens[:4].shape
        at = slice(0, max(1, length // 2)) if causal else slice(length // 2, length // 2 + 1)
        tokens, other = tokens[:4], tokens.roll((1, 1), (0, 1))[:4]
        later = torch.hstack([tokens[:, : at.stop], other[:, at.stop :]])
        earlier = torch.hstack([other[:, : at.start], tokens[:, at.start :]])
        mask = torch.arange(length, device=tokens.device).eq(at.start).expand(count, -1)
        seen, *others, alone = (
            self.features(part, None if causal else mask[: len(part)])[:, at]
            for part in (tokens, later, earlier, tokens[-1:])
        )
        least = TOLERANCE * (1 + seen.abs().max())
        if (alone - seen[-1:]).abs().max() > least:
            raise Refusal(
                f"found {origin}, whose logits of a sequence are others when it is read again, "
                f"alone; expected the same, as differences of logits are what is measured; set "
                f"what is drawn by chance in its config.json, where it has a key for that "
                f"(hash_seed of a Reformer), or take another model",
                "weights",
            )
        follows, precedes = ((part - seen).abs().max() > least for part in others)
        if causal and follows:
            raise Refusal(
                f"found {origin}, whose logits change with later tokens, so that its losses of "
                f"next tokens mean nothing; expected a causal model; set what makes its type "
                f"causal in config.json if it was trained so (is_decoder: true for a BERT), else "
                f"name the class that it was trained as in its architectures",
                "weights",
            )
        if not causal and precedes and not follows:
            raise Refusal(
                f"found {origin}, whose logits of a masked token do not change with later tokens; "
                f"expected a masked model, which sees both sides; take is_decoder out of its "
                f"config.json if it was trained so, else name the causal class that it was "
                f"trained as in its architectures",
                "weights",
            )

    @classmethod
    def read_step(cls, run: dict, step: int) -> "Pretrained":
        """A checkpoint of the run whose manifest says `run`, its files compared with it."""
        with series.opened(run["series"], step) as (folder, origin):
            return cls.read(folder, origin, run["description"])

    @classmethod
    def open(
        cls,
        folder: Path,
        length: int,
        objective: str | None = None,
        tokenizer: str | Path | None = None,
    ) -> "Pretrained":
        """The model in a folder, for sequences of `length` tokens of the tokenizer beside it, or in
        the folder `tokenizer`; |V| is the model's where there is none.

        `objective`: `masked` or `next-token`; by default what config.json says.
        """
        origin = str(folder)
        config = layout.read(folder, origin).config
        objective = objective or layout.objective(config, origin)
        said = own_tokenizer.described(tokenizer or folder) or {}
        model = cls.read(folder, origin, describe(config, length, objective, said))
        held = model.library.named_parameters()
        if wrong := [name for name, tensor in held if not tensor.isfinite().all()]:
            raise layout.CheckpointError(
                f"{folder}: its tensor {wrong[0]} holds numbers that are not finite; expected "
                f"weights as they were trained; save or copy them again, or take an earlier "
                f"checkpoint"
            )
        drawn = torch.randint(
            model.vocabulary, (4, length), generator=torch.Generator().manual_seed(0)
        )
        model.check_objective(drawn, origin)
        return model

    @classmethod
    def read(cls, folder: Path, origin: str, description: dict) -> "Pretrained":
        """The model in a folder, whose sequences `description` fits, in single precision.

        `Refusal` where it does not, or where weights are missing. `origin`: the checkpoint's name.
        """
        settings = {key: value for key, value in description.items() if key != "architecture"}
        whole = layout.read(folder, origin)
        objective = layout.objective(whole.config, origin, settings["objective"])
        kind = getattr(transformers, layout.CLASSES[objective])
        try:
            packed = {
                name: kept
                for name, (kept, _, _) in whole.tensors.items()
                if name.endswith("weight")
                and (
                    kept.startswith(("I", "U", "BOOL"))
                    or {f"{name}_scale", f"{name}_scale_inv"} & whole.tensors.keys()
                )
            }
            if packed:
                raise layout.CheckpointError(
                    f"{len(packed)} weights, such as {min(packed)}, are whole numbers, or have "
                    f"scales apart ({packed[min(packed)]}), as of a quantised model; expected "
                    f"plain ones; name the model that it was made of, or dequantise it"
                )
            # Some config.json have a token of padding that the model does not have.
            pad, rows = whole.config.get("pad_token_id"), layout.output_rows(whole.config)
            # The attention is the library's own choice for this machine, whatever config.json says.
            given = {"_attn_implementation": None}
            if pad and rows and pad >= rows:
                given["pad_token_id"] = None
            if (folder / layout.CONFIG).read_bytes()[:3] == b"\xef\xbb\xbf":
                # The library does not read a file with a mark of byte order.
                given = {"config": transformers.AutoConfig.for_model(**whole.config | given)}
            learnt = any(".position_embeddings" in name for name in whole.tensors)
            for other_names in (None, layout.unwrapped(whole.tensors)):
                with _quiet():
                    library, found = kind.from_pretrained(
                        folder,
                        key_mapping=other_names,
                        dtype=torch.float32,
                        attn_implementation=None,
                        use_safetensors=True,
                        local_files_only=True,
                        output_loading_info=True,
                        ignore_mismatched_sizes=True,
                        **given,
                    )
                # Frequencies are computed, unless positions were learnt in their place.
                missing = found["missing_keys"]
                wrong = [name for name in missing if learnt or not name.endswith("inv_freq")]
                wrong += [
                    f"{name} (found shape {[*held]}, expected {[*wanted]})"
                    for name, held, wanted in found["mismatched_keys"]
                ]
                if not wrong:
                    break
            if wrong:
                shards = {shard for _, _, shard in whole.tensors.values()}
                parts = {path.name for path in folder.glob("model-*-of-*.safetensors")}
                way = (
                    "save it from the class that it was trained as (after merge_and_unload() "
                    "where an adapter is inside), correct the sizes in its "
                    "config.json, or set tie_word_embeddings there if its head is its embedding"
                )
                if left := parts - shards:
                    way = (
                        f"{min(left)} is there, but {layout.INDEX} does not list it: write that "
                        f"anew: {layout.MAKE_INDEX.format(folder)}"
                    )
                if any(0 in shape for _, shape, _ in whole.tensors.values()):
                    way = (
                        "join its parts, which ZeRO-3 saved apart (python zero_to_fp32.py FOLDER "
                        "other --safe_serialization), and name that folder"
                    )
                others = [f", and {name} is not used" for name in sorted(found["unexpected_keys"])]
                raise layout.CheckpointError(
                    f"{len(wrong)} tensors of {type(library).__name__} are missing or have another "
                    f"shape, such as {min(wrong)}{''.join(others[:1])}; expected all of them; {way}"
                )
            known = library.state_dict().keys()
            ahead = [  # of DeepSeek-V3: layers behind the last, which predict tokens further on
                f".layers.{library.config.num_hidden_layers + layer}."
                for layer in range(getattr(library.config, "num_nextn_predict_layers", 0) or 0)
            ]
            unused = [
                name
                for name in found["unexpected_keys"]
                if not any(layer in name for layer in ahead)
                and (OF_LAYER.search(name) or f"{name.removesuffix('bias')}weight" in known)
            ]
            if unused:
                raise layout.CheckpointError(
                    f"{len(unused)} tensors of the checkpoint, such as {min(unused)}, are none of "
                    f"{type(library).__name__} as its config.json has it; expected those of its "
                    f"layers and head alone; correct config.json, or save it from the class that "
                    f"it was trained as (without further heads, such as Medusa's)"
                )
            output = library.get_output_embeddings()
            head = getattr(output, "weight", torch.empty(0))  # a Perceiver has none of its own
            alike = [held for held in library.parameters() if held.shape == head.shape]
            for name, (_, shape, shard) in whole.tensors.items():
                if name in known or OF_LAYER.search(name) or shape != [*head.shape]:
                    continue
                tensor = safe_open(folder / shard, "pt").get_tensor(name).float()
                if not any(map(tensor.equal, alike)):
                    raise layout.CheckpointError(
                        f"found a tensor {name}, of the shape of the head, that is no tensor of "
                        f"{type(library).__name__}; expected one head; if that one was trained, "
                        f"write it as {next(n for n, p in library.named_modules() if p is output)}"
                        f".weight, with tie_word_embeddings: false in config.json, else take it out"
                    )
            return cls(library.eval(), **settings)
        except Refusal as error:
            raise type(error)(f"{origin}: {error}") from error
        except Exception as error:  # packages that a class asks for raise what they will
            raise Refusal(
                f"found {origin}, which transformers {transformers.__version__} cannot read "
                f"({type(error).__name__}: {' '.join(str(error).split())}); expected a model that "
                f"transformers.{kind.__name__}.from_pretrained({str(folder)!r}) reads here; "
                f"install what it asks for, or save the model again with this version",
                "weights",
            ) from error


def describe(config: dict, length: int, objective: str, said: dict) -> dict:
    """The settings of the model of transformers' `config`, for sequences of `length` tokens, and of
    what `own_tokenizer.describe` said: |V| counts no token beyond the model's rows."""
    size = min(filter(None, (said.get("vocabulary"), layout.output_rows(config))))
    return {
        "vocabulary": size,
        "length": length,
        "objective": objective,
        "config": {key: part for key, part in config.items() if key not in layout.BOOKKEEPING},
        "special": [token for token in said.get("special", []) if token < size],
        "mask": config.get("mask_token_id") if said.get("mask") is None else said["mask"],
    }


def check_positions(config: dict, length: int) -> None:
    """`Refusal` where sequences of `length` tokens are longer than a config says of its model."""
    most = next((config[key] for key in POSITIONS if isinstance(config.get(key), int)), 0)
    if config.get("position_embedding_type") == "rotary":  # ESM-2's, at any length
        most = 0
    if length > most > 0:
        raise Refusal(
            f"found a model of at most {most} positions, but the sequences have length "
            f"{length}, special tokens included; expected at most {most}; lower the "
            f"length (of the source, or `--length` of `manybody spectrum`), or cut the sequences",
            "weights",
        )


class _quiet:
    """The library's remarks about a checkpoint are not shown: what matters is refused."""

    def __enter__(self):
        self.before = transformers.logging.get_verbosity()
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()

    def __exit__(self, *_):
        transformers.logging.set_verbosity(self.before)
