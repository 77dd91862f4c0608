import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { OpenTerminals } from '../host/pty/open-terminals.ts';
import type { TerminalMessage } from './terminals.ts';
import { TestLink } from './test/test-link.ts';

/** Acts as a hostile orchestrator. */
let link: TestLink;

beforeEach(() => {
  link = new TestLink();
});
afterEach(async () => {
  await link.end();
});

const openFiles = () => readdirSync('/proc/self/fd').length;

const channel = fc.nat({ max: 6 });
const length = fc.integer({ min: 1, max: 1000 });
const size = { cols: length, rows: length };
const shell = fc.oneof(
  fc.constant(null),
  fc.constantFrom('/bin/sh', '/', 'sh', '/bin/../bin/sh', '/bin/sh -x', '/bin/sh\0'),
  fc.string({ unit: codePoint, maxLength: 256 }),
);
const request = { session_id: fc.constant('0'.repeat(26)), operator: fc.string({ unit: codePoint }), shell };
const credited = fc.oneof(length, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));
const act = fc.oneof(
  fc.record({ type: fc.constant('terminal_open' as const), channel, ...size, ...request }),
  fc.record({ type: fc.constant('terminal_resize' as const), channel, ...size }),
  fc.record({ type: fc.constant('terminal_close' as const), channel, reason: fc.string() }),
  fc.record({ type: fc.constant('terminal_credit' as const), channel, bytes: credited }),
  fc.record({ type: fc.constant('typed' as const), channel, bytes: fc.uint8Array({ minLength: 1, maxLength: 2000 }) }),
  fc.constant({ type: 'moment' as const }),
);

describe.skipIf(process.platform !== 'linux')('terminals', () => {
  test('never exceeds the maximum number of terminals, no matter how many requests are concurrent', async () => {
    link.settings = { ...link.settings, max_sessions: 3 };
    const all = await Promise.all(Array.from({ length: 50 }, () => link.open()));
    const opened = all.filter(({ answer }) => answer?.type === 'terminal_opened');
    expect(opened).toHaveLength(3);
    for (const one of all)
      if (!opened.includes(one)) expect(one.answer).toMatchObject({ type: 'terminal_refused', code: 'limit' });
    // Lowering the limit does not close open terminals.
    link.settings = { ...link.settings, max_sessions: 1 };
    link.terminals.settingsChanged();
    for (const one of opened) expect(await one.run('echo still=$((3*3))')).toContain('still=9');
    opened[0]!.close();
    await opened[0]!.ended();
    expect((await link.open()).answer).toMatchObject({ type: 'terminal_refused', code: 'limit' });
  });

  test('responds to each request once for any order of messages, and leaves no files open', async () => {
    await (await link.open()).run('true');
    const before = openFiles();
    const converse = async (acts: (typeof act extends fc.Arbitrary<infer Act> ? Act : never)[]) => {
      const received: { type: string; channel: number }[] = [];
      const other = link.terminals.attach({
        send: (message) => 'channel' in message && received.push(message),
        sendFrame: () => {},
        hasSpace: () => true,
      });
      const given = new Set<number>();
      for (const one of acts) {
        const last = Math.max(0, ...given);
        if (one.type === 'moment') {
          await new Promise((resolve) => setTimeout(resolve, 2));
          continue;
        }
        const isTaken =
          one.type === 'typed' ? other.type(one.channel, one.bytes) : other.receive(one as TerminalMessage);
        if (one.type === 'terminal_open') {
          expect(isTaken).toBe(one.channel > last);
          if (isTaken) given.add(one.channel);
        } else if (one.channel > last) expect(isTaken).toBe(false);
        else if (one.type === 'terminal_resize' || one.type === 'terminal_close') expect(isTaken).toBe(true);
      }
      other.end('the link is gone');
      const times = (type: string, of: number) =>
        received.filter((one) => one.type === type && one.channel === of).length;
      const isOver = (of: number) => times('terminal_refused', of) + times('terminal_exited', of) === 1;
      await expect.poll(() => [...given].every(isOver), { interval: 5 }).toBe(true);
      for (const of of given) expect(times('terminal_opened', of)).toBe(times('terminal_exited', of));
    };
    await fc.assert(fc.asyncProperty(fc.array(act, { maxLength: 40 }), converse), { numRuns: 15 });
    // This terminal has received no messages.
    const noted = () => new OpenTerminals(link.directory).left().length;
    await expect.poll(noted, { interval: 20 }).toBe(1);
    await expect.poll(openFiles, { interval: 20 }).toBeLessThanOrEqual(before);
  });
});
