#include "text/chat_jinja_format.h"

namespace winnow::text {

const char* const kDeepseekV31Template = R"jinja(
{%- set thinks = thinking is defined and thinking -%}
{%- set state = namespace(system='', turn_open=false, after_tool=false) -%}
{%- for message in messages if message.role == 'system' -%}
{%- set state.system = state.system ~ ('' if loop.first else '\n\n') ~ message.content -%}
{%- endfor -%}
{{- bos_token ~ state.system -}}
{%- if tools -%}
{{- '\n\n' if state.system else '' -}}
## Tools
You have access to the following tools:

{% for tool in tools -%}
### {{ tool.function.name }}
Description: {{ tool.function.description | default('') }}

Parameters: {{ tool.function.parameters | default({}) | tojson }}

{% endfor -%}
IMPORTANT: ALWAYS adhere to this exact format for tool use:
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_arguments<｜tool▁call▁end｜>{additional_tool_calls}<｜tool▁calls▁end｜>

Where:
- `tool_call_name` must be an exact match to one of the available tools
- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema
- For multiple tool calls, chain them directly without separators or spaces
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}
{{- '<｜User｜>' ~ message.content -}}
{%- set state.turn_open = true -%}
{%- set state.after_tool = false -%}
{%- elif message.role == 'assistant' -%}
{%- if state.turn_open or not state.after_tool -%}
{{- '<｜Assistant｜></think>' -}}
{%- endif -%}
{{- message.content.split('</think>')[-1] -}}
{%- if message.tool_calls -%}
<｜tool▁calls▁begin｜>
{%- for call in message.tool_calls -%}
<｜tool▁call▁begin｜>{{ call.function.name }}<｜tool▁sep｜>
{{- call.function.arguments if call.function.arguments is string
    else call.function.arguments | tojson -}}
<｜tool▁call▁end｜>
{%- endfor -%}
<｜tool▁calls▁end｜>
{%- endif -%}
{{- eos_token -}}
{%- set state.turn_open = false -%}
{%- set state.after_tool = false -%}
{%- elif message.role == 'tool' -%}
<｜tool▁output▁begin｜>{{ message.content }}<｜tool▁output▁end｜>
{%- set state.turn_open = false -%}
{%- set state.after_tool = true -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and not state.after_tool -%}
{{- '<｜Assistant｜>' ~ ('<think>' if thinks else '</think>') -}}
{%- endif -%}
)jinja";

}  // namespace winnow::text
