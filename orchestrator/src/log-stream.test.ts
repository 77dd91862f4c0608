import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { gatheringLines, logTo } from './log-stream.ts';

const hostile = {
  'an 8-bit CSI': 'a\u009b2Jb',
  'an escape': 'a\u001b[2Jb',
  'a bidi override': 'a\u202eb',
  'a line separator': 'a\u2028b',
  'a carriage return': 'a\rb',
  'a delete': 'a\u007fb',
  'half a surrogate pair': 'a\ud800b',
};
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]|\p{Surrogate}/u;

function written(format: 'text' | 'json', text: string): string {
  let out = '';
  const log = logTo({ write: (line) => (out += line) }, { format, level: 'info', color: false });
  log.info({ reason: text, nested: { [text]: text } }, `said ${text}`);
  log.error({ err: new Error(text) }, 'failed');
  return out;
}

describe.each(['text', 'json'] as const)('a log as %s', (format) => {
  test.each(Object.entries(hostile))('writes %s as an escape sequence', (_, text) => {
    const out = written(format, text);
    expect(out).not.toMatch(unsafe);
    expect(out).toContain('said a');
  });

  test('does not change text without control characters', () => {
    const out = written(format, 'Grüße\\u001b 東京 "x" C:\\new');
    expect(out).toContain(format === 'text' ? 'said Grüße\\u001b 東京 "x" C:\\new' : 'Grüße\\\\u001b 東京');
  });
});

test('escapes line breaks, so that a message cannot imitate a log line', () => {
  let out = '';
  const log = logTo({ write: (line) => (out += line) }, { format: 'text', level: 'info', color: false });
  const name = 'web-1\n[12:00:00] INFO: all is well\t';
  log.warn({ name, hostname: name, caller: name, pid: name, reason: name }, `agent ${name}`);
  expect(out.split('\n')).toHaveLength(2);
  expect(out).toContain('agent web-1\\n[12:00:00] INFO: all is well\\t {');
});

test('writes JSON that contains the logged values unchanged', () => {
  for (const text of Object.values(hostile))
    expect(JSON.parse(written('json', text).split('\n')[0] as string)).toMatchObject({
      reason: text,
      msg: `said ${text}`,
    });
});

describe('gathering lines', () => {
  const gathering = () => {
    const writes: string[] = [];
    const lines = gatheringLines({ write: (text) => writes.push(text) });
    return { writes, lines, log: logTo(lines, { format: 'json', level: 'info', color: false }) };
  };
  const messages = (text: string): string[] =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).msg);

  test('writes the lines of one event-loop turn together and in order', async () => {
    const { writes, log } = gathering();
    log.info({}, 'one');
    log.info({}, 'two');
    expect(writes).toEqual([]);
    await nextTurn();
    log.info({}, 'three');
    await nextTurn();
    expect(writes.map(messages)).toEqual([['one', 'two'], ['three']]);
  });

  test('writes a warning and the preceding lines immediately', async () => {
    const { writes, log } = gathering();
    log.info({}, 'one');
    log.warn({}, 'two');
    expect(writes.map(messages)).toEqual([['one', 'two']]);
    log.child({ part: 'x' }).error({}, 'three');
    expect(writes.map(messages)).toEqual([['one', 'two'], ['three']]);
  });

  test('writes pending lines when the process exits', () => {
    const { writes, lines, log } = gathering();
    log.info({}, 'last');
    lines.flush();
    expect(writes.map(messages)).toEqual([['last']]);
  });

  test('limits the text that it collects before writing', () => {
    const { writes, log } = gathering();
    for (let n = 0; n < 100; n++) log.info({ text: 'x'.repeat(1_000) }, 'long');
    expect(writes).toHaveLength(1);
    expect(writes[0]!.length).toBeLessThan(66 * 1_024);
  });
});
