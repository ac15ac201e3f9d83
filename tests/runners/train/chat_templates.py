"""Chat templates in the manner of well-known ones, and rows to render with them."""

from __future__ import annotations

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# tools in the system turn, calls as JSON between tags, results in a turn of the user
CHATML_TOOLS = """\
{%- set start = 0 %}
{%- if messages[0].role == 'system' %}{% set start = 1 %}{% endif %}
{%- if tools or start %}
{{- '<|im_start|>system\\n' }}
{%- if start %}{{ messages[0].content + '\\n' }}{% endif %}
{%- if tools %}
{{- 'Tools:' }}
{%- for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages[start:] %}
{%- if m.role == 'tool' %}
{%- if loop.first or messages[start + loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
{{- '\\n<result>' + m.content + '</result>' }}
{%- if loop.last or messages[start + loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
{%- else %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.content %}{{ m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}
{{- '<call>' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '</call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

# a beginning of text, headers, contents trimmed, one call a turn, tools in the first turn of the user
HEADERS = """\
{{- '<|endoftext|>' }}
{%- for m in messages %}
{{- '[' + m.role + ']\\n\\n' }}
{%- if tools and m.role == 'user' and loop.index0 == (1 if messages[0].role == 'system' else 0) %}
{{- 'Given these functions:\\n' }}{% for t in tools %}{{ t | tojson(indent=2) }}{% endfor %}
{%- endif %}
{%- if m.tool_calls %}
{%- if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}
{%- set f = m.tool_calls[0].function %}
{{- '{"name": "' + f.name + '", "parameters": ' + (f.arguments | tojson) + '}' }}
{%- elif m.role == 'tool' %}{{ m.content | tojson }}
{%- else %}{{ m.content | trim }}
{%- endif %}
{{- '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '[assistant]\\n\\n' }}{% endif %}
"""


def marked(body: str) -> str:
    """A template with markers: `body` renders a turn of the assistant after its opening."""
    return (
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}{% if m['role'] == 'assistant' %}"
        + body
        + "{% else %}{{ m['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )


MARKED = marked("{% generation %}{{ m['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}")
MARKED_WITHOUT_END = marked(
    "{% generation %}{{ m['content'] }}{% endgeneration %}{{ '<|im_end|>\n' }}"
)
MARKED_WITH_OPENING = CHATML.replace(
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}",
    "{{ '<|im_start|>' + m['role'] }}{% if m['role'] == 'assistant' %}{% generation %}{{ '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endgeneration %}{% else %}{{ '\n' + m['content'] + '<|im_end|>\n' }}{% endif %}",
)
MARKED_LAST_ONLY = marked(
    "{% if loop.last %}{% generation %}{{ m['content'] + '<|im_end|>\n' }}{% endgeneration %}"
    "{% else %}{{ m['content'] + '<|im_end|>\n' }}{% endif %}"
)
MARKED_NOWHERE = marked(
    "{{ m['content'] + '<|im_end|>\n' }}{% if false %}{% generation %}{% endgeneration %}{% endif %}"
)
MARKED_BEGINNING = marked(
    "{% generation %}{{ m['content'][:3] }}{% endgeneration %}{{ m['content'][3:] + '<|im_end|>\n' }}"
)
MARKED_LATE = marked(
    "{{ m['content'][:9] }}{% generation %}{{ m['content'][9:] + '<|im_end|>\n' }}{% endgeneration %}"
)
MARKED_EVERYTHING = "{% generation %}" + CHATML + "{% endgeneration %}"

ENDS_EVERY_RENDERING = CHATML.replace("{% endif %}", "{% else %}{{ eos_token }}{% endif %}")
COUNTS_AND_ENDS = "{{ messages | length }}" + ENDS_EVERY_RENDERING

STRIPS_EARLIER_THOUGHT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{% if m['role'] == 'assistant' and not loop.last %}{{ m['content'].split('</think>')[-1] }}"
    "{% else %}{{ m['content'] }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
STRIPS_ALL_THOUGHT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'].split('</think>')[-1] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
DROPS_EARLIER_ANSWERS = (
    "{% for m in messages %}{% if m['role'] != 'assistant' or loop.last %}{{ m['role'] + m['content'] }}{% endif %}"
    "{% endfor %}"
)
COUNTS_TURNS = "{{ messages | length }}" + CHATML
OPENS_OTHERWISE = "{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}{% if add_generation_prompt %}ready{% endif %}"
LATE_USER = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "{{ 'user: ' + messages[loop.index0 - 1]['content'] + ' answer: ' + m['content'] }}{% endif %}{% endfor %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system turn') }}{% endif %}"
    "{{ m['role'] + m['content'] }}{% endfor %}"
)
OVERLOOKS_SYSTEM = (
    "{% for m in messages if m['role'] != 'system' %}{{ m['role'] + m['content'] }}{% endfor %}"
)
DATED = "{{ 'Today: ' + strftime_now('%d %b %Y') + '\n' }}" + CHATML

TOOL = {
    "type": "function",
    "function": {
        "name": "cancel_order",
        "description": "Cancel a pending order.",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}, "reason": {"type": "string"}},
            "required": ["order_id"],
        },
    },
}
SIMPLE = [
    {"role": "system", "content": "You are a desk."},
    {"role": "user", "content": "Cancel it."},
    {"role": "assistant", "content": "Which order?"},
]
SEVERAL = [
    *SIMPLE,
    {"role": "user", "content": "Order #W7."},
    {"role": "assistant", "content": "It is cancelled."},
]
THOUGHT = [
    *SIMPLE,
    {"role": "user", "content": "Order #W7."},
    {"role": "assistant", "content": "<think>pending</think>It is cancelled."},
]
THOUGHT_EARLY = [
    *SIMPLE[:2],
    {"role": "assistant", "content": "<think>no number</think>Which order?"},
    *SEVERAL[3:],
]


def call(number: int, name: str = "cancel_order", **arguments: object) -> dict[str, object]:
    """A tool call."""
    return {
        "id": f"call-{number}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


CALLING = [
    {"role": "system", "content": "You are a desk."},
    {"role": "user", "content": "Cancel #W7."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [call(1, order_id="#W7", reason='a "gift"')],
    },
    {"role": "tool", "content": '{"done": true}', "tool_call_id": "call-1"},
    {"role": "assistant", "content": "It is cancelled."},
]
TWO_CALLS = [
    *CALLING[:2],
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [call(1, order_id="#W7"), call(2, order_id="#W8")],
    },
    {"role": "tool", "content": "done", "tool_call_id": "call-1"},
    {"role": "tool", "content": "not pending", "tool_call_id": "call-2"},
    {"role": "assistant", "content": "One is cancelled."},
]
