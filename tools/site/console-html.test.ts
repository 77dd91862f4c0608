import { expect, test } from 'vitest';
import { consoleHtml } from './console-html.ts';

test('distinguishes commands from prompts and output, and copies only commands', () => {
  const html = consoleHtml('ada@control:~$ cat << END\n> ${{ <x> }}\n> END\n> quoted\nroot@web-1:~# exit\n');
  const parts = [...html.matchAll(/<span class="([^"]+)">([^<]*)<\/span>/g)].map(([, kind, text]) => [kind, text]);
  expect(parts.slice(1)).toEqual([
    ['prompt vp-copy-ignore', 'ada@control:~$ '],
    ['typed', 'cat &lt;&lt; END\n'],
    ['prompt vp-copy-ignore', '&gt; '],
    ['typed', '$&#123;&#123; &lt;x&gt; }}\n'],
    ['prompt vp-copy-ignore', '&gt; '],
    ['typed', 'END\n'],
    ['prompt vp-copy-ignore', '&gt; '],
    ['typed', 'quoted\n'],
    ['prompt vp-copy-ignore', 'root@web-1:~# '],
    ['typed', 'exit\n'],
  ]);
});
