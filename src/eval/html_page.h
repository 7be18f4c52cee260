// What every report page has: its style and its filters.
#pragma once

#include <string_view>

namespace winnow::eval {

inline constexpr std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .8rem .2rem 0; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
form { position: sticky; top: 0; background: Canvas; padding: .6rem 0; display: flex; gap: .6rem;
  flex-wrap: wrap; border-bottom: 1px solid var(--line); }
details { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; padding: .3rem 0; }
summary b { display: inline-block; min-width: 4.5rem; }
.right > summary b { color: #2a8a3e; } .wrong > summary b { color: #c0392b; }
.invalid > summary b, .refused > summary b, .failed > summary b { color: #b7791f; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .6rem;
  border-radius: .4rem; margin: .2rem 0 .8rem; }
small { opacity: .75; }
)css";

inline constexpr std::string_view kPageScript = R"js(
const form = document.forms[0], samples = [...document.querySelectorAll("details.s")];
function show() {
  const want = Object.fromEntries(new FormData(form)), text = want.text.toLowerCase();
  let shown = 0;
  for (const s of samples) {
    const fits = (!want.outcome || s.dataset.o === want.outcome ||
                  (want.outcome === "truncated" && s.dataset.t === "1")) &&
      (!want.category || s.dataset.c === want.category) &&
      (!want.repeat || s.dataset.r === want.repeat) &&
      (!text || s.textContent.toLowerCase().includes(text));
    s.hidden = !fits;
    shown += fits;
  }
  document.getElementById("shown").textContent = shown + " of " + samples.length + " samples";
}
form.addEventListener("input", show);
form.addEventListener("submit", e => e.preventDefault());
show();
)js";

}  // namespace winnow::eval
