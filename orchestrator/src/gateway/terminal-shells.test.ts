import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { limits as wireLimits } from '@muster/protocol/wire';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { MemoryLinks } from '../../test/memory-links.ts';
import { dialAsAgent, type TestAgent } from '../../test/test-agent.ts';
import type { Bus } from '../bus/bus.ts';
import { createInProcessBus } from '../bus/in-process.ts';
import type { Shell, ShellEvents, ShellExit, ShellOptions } from '../domain/terminals/shells.ts';
import { type Identity, loadIdentity } from '../identity/identity.ts';
import { createGateway, type Gateway } from './gateway.ts';
import type { GatewayLimits } from './limits.ts';

let dir: string;
let identity: Identity;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-shells-'));
  identity = await loadIdentity(dir);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

let gateway: Gateway;
let port: number;
let links: MemoryLinks;
let bus: Bus;
let clock: ManualClock;
let faults: string[];
const agents: TestAgent[] = [];

beforeEach(() => {
  links = new MemoryLinks();
  bus = createInProcessBus((error) => {
    throw error;
  });
  clock = new ManualClock();
  faults = [];
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.end();
  await gateway.close();
  await bus.close();
});

async function start(limits: Partial<GatewayLimits> = {}): Promise<void> {
  const quiet = () => {};
  const error = (fields: object, message: string) => void faults.push(`${message}: ${(fields as { err?: Error }).err}`);
  const log = { debug: quiet, info: quiet, warn: quiet, error };
  gateway = createGateway({ identity, links, bus, clock, log, random: () => 0.5, limits });
  port = await gateway.listen('127.0.0.1', 0);
}

async function connected(versions = [3, 2, 1]): Promise<TestAgent> {
  const agent = await dialAsAgent(port);
  agents.push(agent);
  await agent.join({ versions });
  return agent;
}

class RecordedEvents implements ShellEvents {
  readonly events: string[] = [];
  shown = Buffer.alloc(0);
  readonly frames: Uint8Array[] = [];
  output(bytes: Uint8Array): void {
    this.frames.push(bytes);
    this.shown = Buffer.concat([this.shown, bytes]);
    if (this.events.at(-1) !== 'output') this.events.push('output');
  }
  writable(): void {
    this.events.push('writable');
  }
  exited({ code, signal }: ShellExit): void {
    this.events.push(`exited ${code} ${signal}`);
  }
  lost(reason: string): void {
    this.events.push(`lost: ${reason}`);
  }
}

const optionsFor = (agent: TestAgent): ShellOptions => ({
  session_id: '01KAGZ7Q4W8E2R5T6Y9V0P3A1S',
  node_id: agent.key.nodeId,
  cols: 120,
  rows: 40,
  shell: null,
  operator: 'ada',
});

/** Opens a shell on this agent. @returns the shell, its channel, and its events */
async function opened(agent: TestAgent): Promise<{ shell: Shell; channel: number; recorded: RecordedEvents }> {
  const recorded = new RecordedEvents();
  const opening = gateway.shells.open(optionsFor(agent), recorded);
  const { channel } = await agent.next('terminal_open');
  agent.send({ type: 'terminal_opened', channel, shell: '/bin/bash', user: 'root' });
  return { shell: await opening, channel, recorded };
}

/**
 * Resolves when `condition` returns true. Does not advance the clock, so I/O that is already in progress must fulfill
 * it.
 */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

const { terminalOutputWindowBytes: outputWindow, terminalInputWindowBytes: inputWindow } = wireLimits;
const piece = Buffer.alloc(wireLimits.terminalFrameBytes, 'o');

describe('opening a shell', () => {
  test('requests a shell from the agent, and returns it once it is open', async () => {
    await start();
    const agent = await connected();
    const recorded = new RecordedEvents();
    const opening = gateway.shells.open({ ...optionsFor(agent), shell: '/bin/zsh' }, recorded);
    const openRequest = await agent.next('terminal_open');
    expect(openRequest).toEqual({
      type: 'terminal_open',
      channel: 1,
      session_id: '01KAGZ7Q4W8E2R5T6Y9V0P3A1S',
      cols: 120,
      rows: 40,
      shell: '/bin/zsh',
      operator: 'ada',
    });
    agent.send({ type: 'terminal_opened', channel: 1, shell: '/bin/zsh', user: 'root\u001b[31m' });
    const shell = await opening;
    expect(shell).toMatchObject({ program: '/bin/zsh', user: 'root [31m' });
    expect((await opened(agent)).channel).toBe(2);
    expect((await opened(await connected())).channel).toBe(1);
    expect(recorded.events).toEqual([]);
  });

  test('reports no event before the caller receives the shell, and then reports all events in order', async () => {
    await start();
    const agent = await connected();
    const recorded = new RecordedEvents();
    const opening = gateway.shells.open(optionsFor(agent), recorded).then(() => recorded.events.push('in hand'));
    const { channel } = await agent.next('terminal_open');
    // Uses a single write, so that the gateway reads all messages in one event-loop turn.
    agent.socket.cork();
    agent.send({ type: 'terminal_opened', channel, shell: '/bin/sh', user: 'root' });
    agent.show(channel, Buffer.from('motd'));
    agent.send({ type: 'terminal_exited', channel, exit_code: 3, signal: null });
    agent.socket.uncork();
    await opening;
    await until(() => recorded.events.length === 3);
    expect(recorded.events).toEqual(['in hand', 'output', 'exited 3 null']);
    expect(recorded.shown.toString()).toBe('motd');
  });

  test('rejects a shell with the agent’s reason, without control characters', async () => {
    await start();
    const agent = await connected();
    const refused = async (code: string, message: string) => {
      const opening = gateway.shells.open(optionsFor(agent), new RecordedEvents());
      const { channel } = await agent.next('terminal_open');
      agent.send({ type: 'terminal_refused', channel, code, message });
      return opening.then(
        () => null,
        ({ code, message }) => ({ code, message }),
      );
    };
    const { nodeId } = agent.key;
    expect(await refused('disabled', 'it is off')).toEqual({
      code: 'terminal_disabled',
      message: `${nodeId}: it is off`,
    });
    expect(await refused('limit', 'four are open')).toMatchObject({ code: 'terminal_limit' });
    expect(await refused('shell_refused', 'no choice')).toMatchObject({ code: 'terminal_shell_refused' });
    const message = `${'x'.repeat(900)}`;
    expect(await refused('failed', `\u001b]0;pwned\u0007\n${message}`)).toEqual({
      code: 'terminal_failed',
      message: `${nodeId}:  ]0;pwned ${'x'.repeat(489)}…`,
    });
    expect(await refused('failed', '')).toMatchObject({ message: 'The agent could not start the shell' });
  });

  test('refuses to open a shell on an agent that is disconnected, unapproved, or too old', async () => {
    await start();
    const agent = await connected();
    const open = (options: ShellOptions) => gateway.shells.open(options, new RecordedEvents());
    await expect(open({ ...optionsFor(agent), node_id: 'nobody' })).rejects.toMatchObject({ code: 'agent_offline' });
    const older = await connected([2, 1]);
    await expect(open(optionsFor(older))).rejects.toMatchObject({
      code: 'terminal_disabled',
      message: `the release of ${older.key.nodeId} has no terminals: update its agent`,
    });
    links.newStatus = 'pending';
    await expect(open(optionsFor(await connected()))).rejects.toMatchObject({ code: 'agent_not_approved' });
    const draining = gateway.drain();
    await expect(open(optionsFor(agent))).rejects.toMatchObject({ code: 'draining' });
    await draining;
  });

  test('rejects a shell after ten seconds without a reply, and ignores later messages about it', async () => {
    await start();
    const agent = await connected();
    const recorded = new RecordedEvents();
    const opening = gateway.shells.open(optionsFor(agent), recorded);
    const refusal = expect(opening).rejects.toMatchObject({
      code: 'agent_timeout',
      message: `${agent.key.nodeId} did not start a shell within 10 s`,
    });
    const { channel } = await agent.next('terminal_open');
    clock.advance(9_500);
    await agent.settled();
    expect(agent.count('terminal_close')).toBe(0);
    clock.advance(1_000);
    await refusal;
    expect(await agent.next('terminal_close')).toMatchObject({ channel, reason: 'the shell did not start in time' });
    agent.send({ type: 'terminal_opened', channel, shell: '/bin/sh', user: 'root' });
    agent.show(channel, Buffer.from('late'));
    agent.send({ type: 'terminal_exited', channel, exit_code: 0, signal: null });
    await agent.settled();
    // Proves that the link still works.
    await opened(agent);
    expect(recorded.events).toEqual([]);
  });

  test('rejects a pending open request when the link closes', async () => {
    await start();
    const agent = await connected();
    const opening = gateway.shells.open(optionsFor(agent), new RecordedEvents());
    await agent.next('terminal_open');
    agent.end();
    await expect(opening).rejects.toMatchObject({
      code: 'agent_offline',
      message: `the link to ${agent.key.nodeId} ended: connection lost`,
    });
  });

  test('refuses a shell beyond the per-link maximum, and counts closed shells until they have exited', async () => {
    await start({ terminalsOfLink: 2 });
    const agent = await connected();
    const first = await opened(agent);
    await opened(agent);
    first.shell.close('done');
    const another = () => gateway.shells.open(optionsFor(agent), new RecordedEvents());
    await expect(another()).rejects.toMatchObject({ code: 'terminal_limit' });
    agent.send({ type: 'terminal_exited', channel: first.channel, exit_code: null, signal: 'SIGHUP' });
    await agent.settled();
    expect((await opened(agent)).channel).toBe(3);
  });
});

describe('shell output', () => {
  test('delivers all output within the window, and returns credit in large steps', async () => {
    await start();
    const agent = await connected();
    const { shell, channel, recorded } = await opened(agent);
    let shown = 0;
    for (; shown < outputWindow; shown += piece.length) agent.show(channel, piece);
    await until(() => recorded.shown.length === outputWindow);
    shell.taken(outputWindow / 4 - 1);
    await agent.settled();
    expect(agent.count('terminal_credit')).toBe(0);
    shell.taken(1);
    expect(await agent.next('terminal_credit')).toEqual({ type: 'terminal_credit', channel, bytes: outputWindow / 4 });
    for (; shown < outputWindow * 1.25; shown += piece.length) agent.show(channel, piece);
    await until(() => recorded.shown.length === shown);
    // Exceeds the returned credit by one byte.
    agent.show(channel, Buffer.from('x'));
    expect(await agent.next('refused')).toMatchObject({
      code: 'protocol_violation',
      message: 'terminal output exceeds the window of 262144 bytes',
    });
    await until(() => recorded.events.length === 2);
    expect(recorded.events[1]).toBe(`lost: the link to ${agent.key.nodeId} ended: protocol_violation`);
  });

  test('refuses messages for a shell that is not open on their link', async () => {
    await start();
    const cases: [(agent: TestAgent, channel: number) => void, string][] = [
      [(agent, channel) => agent.show(channel + 1, piece), 'channel 2 belongs to no terminal'],
      [(agent) => agent.send({ type: 'terminal_exited', channel: 9, exit_code: 0, signal: null }), 'channel 9 '],
      [(agent) => agent.ws.send(Buffer.of(1, 0, 0, 0, 1)), 'a binary frame of 5 bytes is not a terminal frame'],
      [(agent) => agent.ws.send(Buffer.of(2, 0, 0, 0, 1, 65)), 'not a terminal frame'],
      [(agent) => agent.ws.send(Buffer.of(1, 0, 0, 0, 0, 65)), 'not a terminal frame'],
      [(agent) => agent.ws.send(Buffer.alloc(0)), 'a binary frame of 0 bytes'],
      [(agent) => agent.ws.send(Buffer.alloc(wireLimits.terminalFrameBytes + 6, 1)), 'not a terminal frame'],
      [
        (agent, channel) => agent.send({ type: 'terminal_opened', channel, shell: '', user: '' }),
        'terminal_opened was sent twice',
      ],
      [
        (agent, channel) => agent.send({ type: 'terminal_refused', channel, code: 'limit', message: '' }),
        'terminal_refused for an open terminal',
      ],
      [
        (agent, channel) => agent.send({ type: 'terminal_credit', channel, bytes: 1 }),
        'exceeds the input that was sent',
      ],
      [
        (agent, channel) => {
          agent.send({ type: 'terminal_exited', channel, exit_code: 0, signal: null });
          agent.send({ type: 'terminal_exited', channel, exit_code: 0, signal: null });
        },
        'channel 1 belongs to a closed terminal',
      ],
      [
        (agent, channel) => {
          agent.send({ type: 'terminal_exited', channel, exit_code: 0, signal: null });
          agent.show(channel, piece);
        },
        'channel 1 belongs to a closed terminal',
      ],
    ];
    for (const [fault, message] of cases) {
      const agent = await connected();
      const { channel } = await opened(agent);
      fault(agent, channel);
      const refusal = await agent.next('refused');
      expect(refusal.code).toBe('protocol_violation');
      expect(refusal.message).toContain(message);
      await agent.closed;
    }
    expect(faults).toEqual([]);
  });

  test('refuses output and an exit before the shell has opened', async () => {
    await start();
    for (const [early, message] of [
      [(agent: TestAgent) => agent.show(1, piece), 'output of a terminal that was not opened'],
      [
        (agent: TestAgent) => agent.send({ type: 'terminal_exited', channel: 1, exit_code: 0, signal: null }),
        'terminal_exited for a terminal that was not opened',
      ],
      [
        (agent: TestAgent) => agent.send({ type: 'terminal_credit', channel: 1, bytes: 1 }),
        'terminal_credit exceeds the input that was sent',
      ],
    ] as const) {
      const agent = await connected();
      const recorded = new RecordedEvents();
      const opening = expect(gateway.shells.open(optionsFor(agent), recorded)).rejects.toMatchObject({
        code: 'agent_offline',
      });
      await agent.next('terminal_open');
      early(agent);
      expect((await agent.next('refused')).message).toBe(message);
      await opening;
      expect(recorded.events).toEqual([]);
    }
  });

  test('accepts output at a high rate, but limits small frames', async () => {
    await start({ agentMessagesPerSecond: 10, agentMessageBurst: 20, terminalSmallFrameBurst: 1000 });
    const agent = await connected();
    const { shell, channel, recorded } = await opened(agent);
    const large = Buffer.alloc(wireLimits.terminalSmallFrameBytes, 'l');
    let expected = 0;
    // More frames than the message rate allows.
    for (let round = 0; round < 64; round++) {
      agent.show(channel, large);
      expected += large.length;
      await until(() => recorded.shown.length === expected);
      shell.taken(large.length);
    }
    for (let drop = 0; drop < 1000; drop++) agent.show(channel, Buffer.of(46));
    await agent.settled();
    expect(recorded.shown.length).toBe(expected + 1000);
    clock.advance(1000);
    for (let drop = 0; drop < 250; drop++) agent.show(channel, Buffer.of(46));
    await agent.settled();
    expect(recorded.shown.length).toBe(expected + 1250);
    agent.show(channel, Buffer.of(46));
    expect(await agent.next('refused')).toMatchObject({
      code: 'rate_exceeded',
      message: 'one terminal sends more than 250 frames of less than 4096 bytes per second',
    });
  });

  test('joins unprocessed output, and delivers it completely', async () => {
    await start({ terminalPieces: 10 });
    const agent = await connected();
    const drops = async ({ channel }: { channel: number }) => {
      for (let drop = 0; drop < 100; drop++) agent.show(channel, Buffer.of(drop));
      await agent.settled();
    };
    const [taken, exited, lost] = [await opened(agent), await opened(agent), await opened(agent)];
    for (const one of [taken, exited, lost]) {
      await drops(one);
      expect(one.recorded.frames.length).toBe(10);
    }
    taken.shell.taken(9);
    expect(taken.recorded.frames.length).toBe(10);
    taken.shell.taken(1);
    agent.send({ type: 'terminal_exited', channel: exited.channel, exit_code: 0, signal: null });
    await agent.settled();
    agent.end();
    await until(() => lost.recorded.events.length === 2);
    for (const { recorded } of [taken, exited, lost]) {
      expect(recorded.frames.length).toBe(11);
      expect([...recorded.shown]).toEqual(Array.from({ length: 100 }, (_, drop) => drop));
    }
    expect(exited.recorded.events).toEqual(['output', 'exited 0 null']);
  });

  test('keeps a link whose agent sends output but does not reply to pings', async () => {
    await start();
    const agent = await connected();
    const { channel, recorded } = await opened(agent);
    // The agent does not reply to pings, but sends output.
    Object.assign(agent.ws, { _autoPong: false });
    for (let half = 0; half < 8; half++) {
      clock.advance(30_000);
      agent.show(channel, Buffer.from('tick'));
      await until(() => recorded.shown.length === 4 * (half + 1));
    }
    expect(gateway.presence.lastContactAt(agent.key.nodeId)).toBe(clock.now() / 1000);
  });

  test('delivers small output without retaining the larger read buffer', async () => {
    await start();
    const agent = await connected();
    const { channel, recorded } = await opened(agent);
    agent.socket.cork();
    for (let drop = 0; drop < 100; drop++) agent.show(channel, Buffer.of(46));
    agent.socket.uncork();
    await until(() => recorded.frames.length === 100);
    for (const frame of recorded.frames) expect(frame.buffer.byteLength).toBeLessThanOrEqual(2);
  });
});

describe('shell input', () => {
  test('sends input in chunks within the window, and reports when it accepts input again', async () => {
    await start();
    const agent = await connected();
    const { shell, channel, recorded } = await opened(agent);
    const paste = randomBytes(3 * inputWindow);
    expect(shell.write(paste)).toBe(false);
    await agent.settled();
    expect(agent.typed.get(channel)).toHaveLength(inputWindow);
    expect(agent.longestPiece).toBe(wireLimits.terminalFrameBytes);
    for (let credited = 0; credited < 2 * inputWindow; credited += inputWindow / 4) {
      expect(recorded.events).toEqual([]);
      agent.send({ type: 'terminal_credit', channel, bytes: inputWindow / 4 });
      await agent.settled();
    }
    expect(agent.typed.get(channel)).toEqual(paste);
    expect(recorded.events).toEqual(['writable']);
    expect(shell.write(Buffer.from('x'))).toBe(false);
    agent.send({ type: 'terminal_credit', channel, bytes: inputWindow });
    await agent.settled();
    expect(shell.write(Buffer.from('y'))).toBe(true);
    await agent.settled();
    expect(agent.typed.get(channel)?.subarray(-2).toString()).toBe('xy');
    expect(recorded.events).toEqual(['writable', 'writable']);
  });

  test('sends input before a later size change, and only the last of many sizes', async () => {
    await start();
    const agent = await connected();
    const { shell, channel } = await opened(agent);
    const order: string[] = [];
    agent.ws.on('message', (data: Buffer, isBinary) => order.push(isBinary ? 'bytes' : JSON.parse(`${data}`).type));
    shell.write(Buffer.from('stty size'));
    for (let cols = 1; cols <= 100; cols++) shell.resize(cols, 24);
    const sizes: number[] = [];
    while (sizes.at(-1) !== 100) sizes.push((await agent.next('terminal_resize')).cols);
    expect(agent.typed.get(channel)?.toString()).toBe('stty size');
    expect(order.slice(0, 2)).toEqual(['bytes', 'terminal_resize']);
    expect(sizes[0]).toBe(1);
    expect(sizes.length).toBeLessThan(5);
  });

  test('terminates only the shell whose queued input exceeds the maximum', async () => {
    await start();
    const agent = await connected();
    const { shell, channel, recorded } = await opened(agent);
    const other = await opened(agent);
    const chunk = Buffer.alloc(64 * 1024);
    for (let at = 0; at < 18; at++) shell.write(chunk);
    expect(recorded.events).toEqual(['lost: too much input was sent before the shell read it']);
    expect(await agent.next('terminal_close')).toMatchObject({ channel, reason: 'too much queued input' });
    agent.send({ type: 'terminal_exited', channel, exit_code: null, signal: 'SIGHUP' });
    other.shell.write(Buffer.from('on'));
    await agent.settled();
    expect(agent.typed.get(other.channel)?.toString()).toBe('on');
    expect(recorded.events).toHaveLength(1);
  });

  test('does not disconnect an agent because of unread input', async () => {
    await start({ slowReaderBytes: 1024 });
    const agent = await connected();
    const shells = await Promise.all([opened(agent), opened(agent), opened(agent)]);
    agent.socket.pause();
    for (const { shell } of shells) shell.write(Buffer.alloc(inputWindow));
    // Sends all input in one event-loop turn, so that none of it is written to the network yet.
    for (const { shell } of shells) shell.resize(1, 1);
    await turn();
    expect(gateway.presence.isConnected(agent.key.nodeId)).toBe(true);
    agent.socket.resume();
    await until(() => shells.every(({ channel }) => agent.typed.get(channel)?.length === inputWindow));
    await agent.settled();
  });

  test('joins queued input into few frames', async () => {
    await start();
    const agent = await connected();
    const { shell, channel } = await opened(agent);
    let frames = 0;
    agent.ws.on('message', (_, isBinary) => void (isBinary && frames++));
    // The event loop does not run between these calls, so the network accepts no frame.
    for (let at = 0; at < 10_000; at++) {
      shell.write(Buffer.of(at % 251));
      await null;
    }
    await until(() => agent.typed.get(channel)?.length === 10_000);
    expect(agent.typed.get(channel)?.every((byte, at) => byte === at % 251)).toBe(true);
    expect(frames).toBeLessThan(20);
  });

  test('does not count large input credits toward the message rate', async () => {
    await start({ agentMessagesPerSecond: 10, agentMessageBurst: 20 });
    const agent = await connected();
    const { shell, channel } = await opened(agent);
    const paste = Buffer.alloc(100 * (inputWindow / 4));
    shell.write(paste.subarray(0, inputWindow));
    for (let at = inputWindow; at < paste.length; at += inputWindow / 4) {
      await until(() => agent.typed.get(channel)?.length === at);
      shell.write(paste.subarray(at, at + inputWindow / 4));
      agent.send({ type: 'terminal_credit', channel, bytes: inputWindow / 4 });
    }
    await until(() => agent.typed.get(channel)?.length === paste.length);
    // Small credits count toward the message rate.
    for (let at = 0; at < 30; at++) agent.send({ type: 'terminal_credit', channel, bytes: 1 });
    expect(await agent.next('refused')).toMatchObject({ code: 'rate_exceeded' });
  });
});

describe('a shell that exits', () => {
  test('reports only once that a shell exited, and reports no event afterward', async () => {
    await start();
    const agent = await connected();
    const { shell, channel, recorded } = await opened(agent);
    agent.show(channel, Buffer.from('logout'));
    agent.send({ type: 'terminal_exited', channel, exit_code: null, signal: 'SIGKILL\u001b' });
    await agent.settled();
    expect(recorded.events).toEqual(['output', 'exited null SIGKILL ']);
    // Calls on a shell that has exited have no effect.
    shell.taken(6);
    shell.resize(80, 24);
    expect(shell.write(Buffer.from('x'))).toBe(true);
    shell.close('done');
    agent.end();
    await until(() => !gateway.presence.isConnected(agent.key.nodeId));
    expect(recorded.events).toHaveLength(2);
    expect([agent.count('terminal_close'), agent.count('terminal_resize'), agent.typed.size]).toEqual([0, 0, 0]);
    expect(faults).toEqual([]);
  });

  test('drops output of a closed shell, but enforces its window', async () => {
    await start();
    const agent = await connected();
    const { shell, channel, recorded } = await opened(agent);
    shell.close(`an operator ended it\n${'x'.repeat(300)}`);
    shell.close('again');
    const { reason } = await agent.next('terminal_close');
    expect(reason).toMatch(/^an operator ended it x+…$/);
    for (let at = 0; at < outputWindow; at += piece.length) agent.show(channel, piece);
    await agent.settled();
    expect([recorded.events, agent.count('terminal_close')]).toEqual([[], 0]);
    agent.show(channel, piece);
    expect(await agent.next('refused')).toMatchObject({ code: 'protocol_violation' });
    expect(recorded.events).toEqual([]);
  });

  test('notifies all shells that their link closed', async () => {
    await start();
    const agent = await connected();
    const shells = [await opened(agent), await opened(agent), await opened(agent)];
    const other = await opened(await connected());
    shells[1]!.shell.close('done');
    shells[0]!.recorded.lost = () => {
      throw new TypeError('a bug');
    };
    agent.send({ type: 'bye', reason: 'stopped\u001b[2J' });
    await agent.closed;
    await until(() => shells[2]!.recorded.events.length > 0);
    expect(shells.map(({ recorded }) => recorded.events)).toEqual([
      [],
      [],
      [`lost: the link to ${agent.key.nodeId} ended: bye: stopped [2J`],
    ]);
    expect(faults).toEqual([expect.stringContaining('TypeError: a bug')]);
    expect(other.recorded.events).toEqual([]);
    expect(links.calls).toContain('closed: bye: stopped\u001b[2J');
  });

  test('terminates the shells of a refused link immediately, before the agent closes it', async () => {
    await start();
    const faults: ((agent: TestAgent) => void)[] = [
      (agent) => agent.show(9, piece),
      (agent) => agent.ws.send(Buffer.alloc(wireLimits.agentFrameBytes + 1)),
    ];
    for (const fault of faults) {
      const agent = await connected();
      const { recorded } = await opened(agent);
      const opening = gateway.shells.open(optionsFor(agent), new RecordedEvents());
      await agent.next('terminal_open');
      fault(agent);
      // The agent does not reply to the close frame.
      agent.socket.pause();
      await expect(opening).rejects.toMatchObject({ code: 'agent_offline' });
      expect(recorded.events).toEqual([`lost: the link to ${agent.key.nodeId} ended: protocol_violation`]);
      expect(links.calls.filter((call) => call.startsWith('closed'))).toEqual([]);
      await expect(gateway.shells.open(optionsFor(agent), new RecordedEvents())).rejects.toMatchObject({
        code: 'agent_offline',
      });
    }
  });

  test('terminates the shells of a rejected agent with its link', async () => {
    await start();
    const agent = await connected();
    const { recorded } = await opened(agent);
    links.row(agent.key.nodeId).standing.status = 'rejected';
    bus.publish({ type: 'agent_changed', node_id: agent.key.nodeId });
    expect(await agent.next('refused')).toMatchObject({ code: 'rejected' });
    await until(() => recorded.events.length > 0);
    expect(recorded.events).toEqual([expect.stringMatching(/^lost: .* ended: rejected$/)]);
  });

  test('closes only the link whose shells cause an internal error', async () => {
    await start();
    const agent = await connected();
    const other = await opened(await connected());
    const { shell, channel } = await opened(agent);
    agent.show(channel, Buffer.from('xy'));
    await agent.settled();
    shell.taken(3);
    await agent.closed;
    expect(faults).toEqual([
      expect.stringContaining('cannot mark 3 terminal bytes as processed: only 2 are outstanding'),
    ]);
    expect(other.recorded.events).toEqual([]);
  });
});
