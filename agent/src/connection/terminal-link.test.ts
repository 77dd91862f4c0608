import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeTerminalFrame, encodeTerminalFrame } from '@muster/protocol/wire';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { MemoryEngine } from '../../test/memory-engine.ts';
import { type ServedLink, TestOrchestrator } from '../../test/test-orchestrator.ts';
import { OpenTerminals } from '../host/pty/open-terminals.ts';
import { SampleBuffer } from '../metrics/sample-buffer.ts';
import { Terminals } from '../terminal/terminals.ts';
import { Connection } from './connection.ts';
import { loadAgentIdentity } from './identity.ts';
import { OrchestratorFile } from './pin.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
let dir: string;
let orchestrator: TestOrchestrator;
let connection: Connection;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-terminals-'));
  orchestrator = await TestOrchestrator.start();
  const settings = { enabled: true, shell: '/bin/sh', allow_operator_shell_override: false, max_sessions: 5, user: '' };
  connection = new Connection({
    identity: await loadAgentIdentity(dir),
    introduction: { agentVersion: '1', instanceId: '11'.repeat(16), hostname: 'web-1' },
    target: {
      host: '127.0.0.1',
      port: orchestrator.port,
      orchestrator_key: orchestrator.publicKey.toString('hex'),
      token: null,
      pinSource: 'flag',
      addresses: [],
      replacedKey: null,
    },
    file: new OrchestratorFile(dir),
    engine: new MemoryEngine(),
    samples: new SampleBuffer(),
    terminals: new Terminals({
      clock: systemClock,
      log: quiet,
      settings: () => settings,
      open: new OpenTerminals(dir),
    }),
    clock: systemClock,
    log: quiet,
    random: () => 0,
    attributes: () => ({}),
  });
  connection.start();
});
afterEach(async () => {
  await connection.stop('the test ends');
  await orchestrator.stop();
  await rm(dir, { recursive: true, force: true });
});

const shownOn = (link: ServedLink, channel: number): string =>
  Buffer.concat(
    link.frames.flatMap((frame) => {
      const shown = decodeTerminalFrame(frame);
      return shown?.channel === channel ? [shown.bytes] : [];
    }),
  ).toString();

const request = {
  type: 'terminal_open',
  session_id: '0'.repeat(26),
  cols: 80,
  rows: 24,
  shell: null,
  operator: 'ann',
} as const;

async function opened(channel = 1, version = 3): Promise<ServedLink> {
  const { link } = await orchestrator.welcomed(0, version);
  link.send({ ...request, channel });
  return link;
}

describe.skipIf(process.platform !== 'linux')('terminals on a link', () => {
  test('sends and receives terminal data as binary frames', async () => {
    const link = await opened(7);
    expect(await link.next('terminal_opened')).toMatchObject({ channel: 7, shell: '/bin/sh' });
    link.ws.send(encodeTerminalFrame(7, Buffer.from('echo $((6*7)); exit 5\r')));
    expect(await link.next('terminal_exited')).toMatchObject({ channel: 7, exit_code: 5, signal: null });
    expect(shownOn(link, 7)).toContain('42\r\n');
    // Input for a closed terminal is not a protocol violation.
    link.ws.send(encodeTerminalFrame(7, Buffer.from('late')));
    link.send({ type: 'terminal_resize', channel: 7, cols: 1, rows: 1 });
    await link.untilSettled();
  });

  test('closes all terminals when the link closes', async () => {
    const link = await opened();
    await link.next('terminal_opened');
    link.ws.send(encodeTerminalFrame(1, Buffer.from('echo own=$$.\r')));
    await link.until(() => /own=\d+\./.test(shownOn(link, 1)));
    const own = /own=(\d+)\./.exec(shownOn(link, 1))?.[1];
    expect(existsSync(`/proc/${own}`)).toBe(true);
    link.ws.terminate();
    await expect.poll(() => existsSync(`/proc/${own}`), { interval: 5 }).toBe(false);
  });

  test.each([
    ['an invalid frame', (link: ServedLink) => link.ws.send(Buffer.from([1, 0, 0, 0, 1]))],
    ['a frame of an unknown kind', (link: ServedLink) => link.ws.send(Buffer.from([2, 0, 0, 0, 1, 65]))],
    ['a frame of an unknown terminal', (link: ServedLink) => link.ws.send(encodeTerminalFrame(2, Buffer.from('x')))],
    ['a request to open a channel that is already open', (link: ServedLink) => link.send({ ...request, channel: 1 })],
  ])('closes the link after %s', async (_name, send) => {
    const link = await opened();
    await link.next('terminal_opened');
    send(link);
    expect(await link.closed).toBe(1008);
  });

  test('offers no terminals to an orchestrator that does not support them', async () => {
    const link = await opened(1, 2);
    expect(await link.closed).toBe(1008);
  });
});
