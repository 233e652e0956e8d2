"""Fields of chat completions that other servers take beside OpenAI's: vLLM, SGLang, llama.cpp, Ollama, LM Studio,
LiteLLM, OpenRouter, Mistral, Groq and others, by their own references.

Fields that hold no text pass; text in the others is protected. What names another endpoint (``api_base``), a key, code
or a search that the server makes is in no table, so it is refused.
"""

from __future__ import annotations

import re
from functools import partial

from allonym.server.gateway import reading
from allonym.server.gateway.passages import NAME
from allonym.server.gateway.reading import Field, FieldReader, FieldReaders, make_list_reader, make_object_reader
from allonym.server.gateway.shapes import map_readers

_DURATION = re.compile(r"-?[0-9]{1,6}(?:ms|s|m|h)?")
_PRICE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,6})?")


def _make_number_or_string_reader(check_string: FieldReader) -> FieldReader:
    def check_number_or_string(field: Field) -> None:
        (check_string if isinstance(field.value, str) else reading.check_number)(field)

    return check_number_or_string


_check_duration = _make_number_or_string_reader(
    partial(Field.check_string_pattern, pattern=_DURATION, description="a duration such as 5m")
)
_check_price = _make_number_or_string_reader(
    partial(Field.check_string_pattern, pattern=_PRICE, description="a number")
)
_check_think = _make_number_or_string_reader(reading.check_word)


def _check_numbers(field: Field) -> None:
    """Check a number, or lists of them."""
    if isinstance(field.value, list):
        for item in field.list_items():
            _check_numbers(item)
    else:
        reading.check_number(field)


def _check_bias(field: Field) -> None:
    """Check numbers by numbers, or pairs of them, as llama.cpp takes them."""
    (_check_numbers if isinstance(field.value, list) else reading.check_number_map)(field)


def _collect_options(field: Field, depth: int = 0) -> None:
    """Collect the texts of options that templates and servers define: short numbers and words of the API pass."""
    if depth > reading.DEEPEST:
        raise field.make_refusal(f"is nested more than {reading.DEEPEST} deep")
    if isinstance(field.value, str):
        words = reading.WORDS.union(field.request.settings.words)
        if field.value not in words:
            reading.collect_text(field)
    elif isinstance(field.value, (list, dict)):
        for child in field.iterate_children():
            _collect_options(child, depth + 1)
    elif field.is_number() and abs(field.value) > reading.LARGEST_BOUND:
        reading.collect_json(field)
    elif field.value is not None:
        reading.check_number(field)


_check_models = make_list_reader(reading.check_model)


def _check_names(field: Field) -> None:
    for item in field.list_one_or_more():
        if not NAME.fullmatch(item.get_string()):
            raise item.make_refusal("must be a name")


_OPTIONS = make_object_reader(
    map_readers(
        number="num_ctx num_batch num_gpu main_gpu num_thread num_keep num_predict low_vram f16_kv vocab_only use_mmap "
        "use_mlock numa seed temperature top_k top_p min_p typical_p tfs_z repeat_last_n repeat_penalty "
        "presence_penalty frequency_penalty mirostat mirostat_tau mirostat_eta penalize_newline",
        texts="stop",
    )
)
_MAX_PRICE = make_object_reader(dict.fromkeys(("prompt", "completion", "image", "audio", "request"), _check_price))
_PROVIDER = make_object_reader(
    {
        **map_readers(
            number="allow_fallbacks require_parameters zdr enforce_distillable_text",
            word="data_collection",
        ),
        **dict.fromkeys(("order", "only", "ignore"), _check_models),
        **dict.fromkeys(("quantizations", "sort"), _check_names),
        "max_price": _MAX_PRICE,
        **dict.fromkeys(("preferred_min_throughput", "preferred_max_latency"), _check_numbers),
    }
)
_STRUCTURED = map_readers(
    description="regex grammar structural_tag whitespace_pattern",
    texts="choice",
    number="json_object disable_fallback disable_any_whitespace disable_additional_properties",
    schema="json",
)
_THINKING = make_object_reader(map_readers(word="type display", number="budget_tokens include_thoughts clear_thinking"))
_REASONING = make_object_reader(
    map_readers(word="effort summary generate_summary", number="max_tokens exclude enabled")
)


def _collect_structured(field: Field) -> None:
    """Check whether the output is structured, or collect how."""
    if field.value is not True and field.value is not False:
        reading.apply_field_readers(field, _STRUCTURED)


EXTRAS: FieldReaders = {
    **map_readers(
        # sampling
        number="best_of use_beam_search length_penalty early_stopping min_tokens max_length ignore_eos typical_p tfs_z "
        "top_a top_n_sigma repeat_penalty repeat_last_n penalize_nl dry_multiplier dry_base dry_allowed_length "
        "dry_penalty_last_n xtc_probability xtc_threshold mirostat mirostat_tau mirostat_eta dynatemp_range "
        "dynatemp_exponent smoothing_factor smoothing_curve epsilon_cutoff eta_cutoff min_keep n_probs random_seed "
        # lengths, caches, scheduling
        "n_predict n_keep n_discard n_indent num_ctx num_predict cache_prompt id_slot slot_id t_max_predict_ms ttl "
        "timeout request_timeout priority truncate_prompt_tokens prompt_truncate_len num_retries max_retries "
        # what the answer holds
        "echo include_stop_str_in_output skip_special_tokens spaces_between_special_tokens prompt_logprobs "
        "return_tokens return_progress return_token_ids return_tokens_as_token_ids timings_per_token "
        "post_sampling_probs raw_output perf_metrics_in_response include_reasoning separate_reasoning "
        "stream_reasoning no_stop_trim return_hidden_states stream_interval "
        # thinking and templates
        "enable_thinking thinking_budget thinking_token_budget thinking_forced_open reasoning_budget parse_tool_calls "
        "add_generation_prompt continue_final_message add_special_tokens safe_prompt raw "
        # gateways
        "drop_params modify_params caching no-log enable_json_schema_validation disable_tool_validation "
        "disable_fallbacks",
        word="reasoning_format prompt_mode route context_length_exceeded_behavior guided_decoding_backend "
        "citation_options",
        texts="bad_words dry_sequence_breakers guided_choice stop_regex choices tags",
        description="guided_regex guided_grammar guided_whitespace_pattern grammar regex ebnf structural_tag "
        "chat_template template",
        schema="guided_json json_schema format",
        text="mock_response suffix system",
        user="cache_salt session_id request_id rid litellm_session_id litellm_trace_id litellm_call_id",
        model="draft_model lora_path preset",
        metadata="trace",
    ),
    **dict.fromkeys(("stop_token_ids", "allowed_token_ids"), _check_numbers),
    **dict.fromkeys(("models", "fallbacks"), _check_models),
    **dict.fromkeys(
        ("samplers", "transforms", "guardrails", "allowed_openai_params", "additional_drop_params"), _check_names
    ),
    **dict.fromkeys(("chat_template_kwargs", "mm_processor_kwargs", "media_io_kwargs", "vllm_xargs"), _collect_options),
    "keep_alive": _check_duration,
    "options": _OPTIONS,
    "think": _check_think,
    "structured_outputs": _collect_structured,
    "documents": make_list_reader(reading.collect_json),
    "provider": _PROVIDER,
    "reasoning": _REASONING,
    "thinking": _THINKING,
    "usage": make_object_reader(map_readers(number="include")),
    "cache": make_object_reader(
        {**map_readers(number="no-cache no-store ttl s-maxage"), "namespace": reading.digest_user}
    ),
    "lora": make_list_reader(make_object_reader(map_readers(number="id scale"))),
    "logit_bias": _check_bias,
}
"""The fields; in a request these and :data:`allonym.server.gateway.shapes.CHAT` are known."""
