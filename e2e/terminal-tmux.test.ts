import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getTranscript, listTerminals } from '@muster/protocol/http';
import { expect } from 'vitest';
import { muster } from '../tools/suite/cli.ts';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { operatorEnvironment } from './person.ts';
import { missing } from './requirements.ts';
import { Tmux } from './tmux.ts';

/** Returns ten million bytes of text that include the key sequences that leave a terminal session. */
function longText(): Buffer {
  const lines: string[] = [];
  for (let bytes = 0, at = 0; bytes < 10_000_000; at++) {
    const odd = ['~.', '~d', '', 'grün 東京 🙂'][at % 7];
    const line = odd ?? `${at} ${'x'.repeat((at * 37) % 200)}`;
    lines.push(`${line}\n`);
    bytes += Buffer.byteLength(line) + 1;
  }
  return Buffer.from(lines.join(''));
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

test('a terminal runs an editor and top in a resized window, accepts ten million pasted bytes, and records all output', async ({
  stage,
  skip,
  onTestFinished,
}) => {
  const reason = missing('linux', 'tmux');
  if (reason !== null) skip(reason);
  const orchestrator = await stage.orchestrator();
  const config = join(stage.folder('config'), 'agent.yml');
  writeFileSync(config, 'remote_terminal: { enabled: true, shell: /bin/sh }\n');
  await stage.agent(orchestrator, 'web-1', { flags: ['--config', config] });
  const window = await Tmux.start(
    stage,
    operatorEnvironment(stage, orchestrator),
    { cols: 90, rows: 24 },
    onTestFinished,
  );
  const here = stage.folder('here');
  const far = stage.folder('far');
  const shown = join(here, 'shown');
  await window.keep(shown);
  await window.seesLine('near>');
  await window.enter('stty -g');
  await window.sees('the output of stty', (lines) => lines.filter((line) => line.startsWith('near>')).length === 2);
  const before = { settings: (await window.screen())[1], modes: await window.modes() };
  await window.enter(`clear; ${muster} terminal open web-1; echo "code=$?"; stty -g`);
  await window.sees('the prompt of the remote shell', ([line = '']) => /^[#$]/.test(line));

  // The remote shell computes the markers, so that the test does not mistake the echo of a command for its output.
  await window.enter(`PS1='far> '; cd '${far}'; printf '\\033[38;2;18;171;52m%s\\033[0m\\n' gre''en`);
  await window.seesLine('green');
  expect(await window.colours()).toContain('\u001b[38;2;18;171;52mgreen');

  // After a resize during an insertion, the editor shows subsequent input in the right position.
  const letter = join(far, 'letter');
  writeFileSync(letter, 'as it was\n');
  await window.enter('vi -u NONE -N -n -i NONE letter');
  await window.sees('the editor', (lines) => lines[0] === 'as it was' && lines[1] === '~');
  await window.type('ogrün 東京 🙂');
  await window.seesLine('grün 東京 🙂');
  await window.resize(70, 18);
  await window.sees('the editor in the full height of the window', (lines) => /^-- INSERT --/.test(lines[17] ?? ''));
  await window.press('Enter');
  await window.type('after it changed');
  await window.sees('the third line', (lines) => lines[2] === 'after it changed');
  expect(await window.modes()).toContain('alternate_on=1');
  await window.press('Escape');
  await window.enter(':wq');
  await window.sees('the screen from before the editor', (lines) => lines.includes('green') && lines.includes('far>'));
  expect(readFileSync(letter, 'utf8')).toBe('as it was\ngrün 東京 🙂\nafter it changed\n');
  expect(await window.modes()).toContain('alternate_on=0');

  // If top were not notified of the resize, its lines would wrap and move the following lines.
  const heading = (lines: string[]) => lines.findIndex((line) => /^ *PID /.test(line));
  await window.enter('top -d 0.2');
  let at = -1;
  await window.sees('top', (lines) => {
    at = heading(lines);
    return at > 0 && /^top - /.test(lines[0] ?? '');
  });
  await window.resize(45, 30);
  await window.sees('top in a narrow window', (lines) => heading(lines) === at && /^top - /.test(lines[0] ?? ''));
  const was = (await window.screen()).join('\n');
  await window.sees('an update of top', (lines) => heading(lines) === at && lines.join('\n') !== was);
  await window.type('q');
  await window.resize(90, 24);
  await window.enter('clear; until [ "$(stty size)" = "24 90" ]; do sleep 0.05; done; echo resi""zed');
  await window.seesLine('resized');

  const paste = join(here, 'paste');
  const text = longText();
  writeFileSync(paste, text);
  // Checks the input at the receiving program, because the kernel drops echo when a terminal is read too slowly.
  await window.enter('clear; echo rea""dy; cat > arrived');
  await window.seesLine('ready');
  await window.paste(paste);
  await window.press('C-d');
  const arrived = join(far, 'arrived');
  const isComplete = async () => (statSync(arrived).size >= text.length ? true : null);
  await eventually('the whole pasted text has arrived', isComplete);
  await window.enter('clear; exit 3');
  await window.sees(
    'the exit code of the session',
    (lines) => lines.some((line) => line.endsWith('code=3')) && lines.includes('near>'),
  );
  expect(await window.screen()).toContain(before.settings);
  expect(sha256(readFileSync(arrived))).toBe(sha256(text));
  expect(await window.modes()).toBe(before.modes);

  // The transcript equals the output in the local terminal, byte for byte.
  const [session] = await orchestrator.call(listTerminals, {});
  const { body } = await orchestrator.call(getTranscript, {
    params: { session_id: session?.session_id as string },
    query: { format: 'raw' },
  });
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  const recorded = Buffer.concat(pieces);
  expect(recorded.length).toBeGreaterThan(1_000_000);
  await eventually('the local terminal has shown the whole transcript', async () => {
    const bytes = readFileSync(shown);
    const from = bytes.indexOf(recorded.subarray(0, 64 * 1024));
    if (from < 0) throw new Error('the local terminal has not shown the beginning of the transcript');
    const part = bytes.subarray(from, from + recorded.length);
    return part.length === recorded.length && sha256(part) === sha256(recorded) ? true : null;
  });
});
