import { typedIn } from '../docs/console.ts';

/** Renders terminal sessions for the site. Highlights commands, and lets readers copy commands without the output. */

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '{': '&#123;' };
const escaped = (text: string): string => text.replaceAll(/[&<>{]/g, (char) => escapes[char] as string);

/**
 * Renders a session.
 * @param source the text of a `console` block
 */
export function consoleHtml(source: string): string {
  let answered = true;
  const lines = source.trimEnd().split('\n');
  const html = lines.map((line) => {
    const typed = typedIn(line);
    const goesOn = !typed && !answered && line.startsWith('> ');
    if (typed) answered = false;
    else if (!goesOn) answered = true;
    if (typed) return part('prompt', `${typed.prompt} `) + part('typed', `${typed.command}\n`);
    if (goesOn) return part('prompt', '> ') + part('typed', `${line.slice(2)}\n`);
    return part('shown', `${line}\n`);
  });
  // The theme's copy button needs these classes.
  return `<div class="language-console"><button title="Copy what is typed" class="copy"></button><span class="lang">terminal</span><pre class="console"><code>${html.join('')}</code></pre></div>`;
}

const part = (kind: 'prompt' | 'typed' | 'shown', text: string): string =>
  `<span class="${kind}${kind === 'typed' ? '' : ' vp-copy-ignore'}">${escaped(text)}</span>`;
