import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../../lib/src/clock.ts';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { NatsFleet } from '../../test/nats/nats-fleet.ts';
import { NatsServer, natsMissing } from '../../test/nats/nats-server.ts';
import { selfSigned } from '../identity/certificate.ts';
import type { Ask } from './asks.ts';
import type { Bus, Hint } from './bus.ts';
import { everyone, Seal } from './sealing.ts';

const work = (node_id: string): Hint => ({ type: 'work', node_id });
const double: Ask<{ number: number }, { doubled: number }> = {
  topic: 'test/double',
  question: z.strictObject({ number: z.number() }),
  answer: z.strictObject({ doubled: z.number() }),
};
const aMinute = { milliseconds: 60_000 };

/** Collects the hints of a bus, with their source. */
function heard(bus: Bus): string[] {
  const seen: string[] = [];
  bus.subscribe((hint, source) => seen.push(`${source} ${'node_id' in hint ? hint.node_id : hint.type}`));
  return seen;
}

describe('replicas with NATS', () => {
  let fleet: NatsFleet;
  let eavesdroppers: NatsConnection[];
  beforeEach(async ({ skip }) => {
    const reason = natsMissing();
    if (reason !== null) skip(reason);
    eavesdroppers = [];
    fleet = await NatsFleet.start();
  });
  afterEach(async () => {
    await Promise.all((eavesdroppers ?? []).map((client) => client.close()));
    await fleet?.end();
  });

  const three = async () => {
    const members = [fleet.join(), fleet.join(), fleet.join()] as const;
    await fleet.isComplete();
    // A replica that connects after both others has missed a message of each. It announces the second loss after a second.
    await sleep(1_000);
    return members;
  };

  /** Connects without the secret of the fleet, and records all messages. */
  const eavesdrop = async () => {
    const client = await connect({ servers: fleet.server.url });
    eavesdroppers.push(client);
    const messages: { subject: string; data: Uint8Array }[] = [];
    client.subscribe('>', { callback: (_, { subject, data }) => void messages.push({ subject, data }) });
    await client.flush();
    return { client, messages };
  };

  test('delivers each hint once on each replica, and identifies a replica’s own hints', async () => {
    const [one, two, three_] = await three();
    const seen = [one, two, three_].map(heard);
    one.publish(work('a'));
    two.publish(work('b'));
    for (const hints of seen) await expect.poll(() => hints.length).toBe(2);
    one.publish(work('end'));
    for (const hints of seen) await expect.poll(() => hints.at(-1)).toMatch('end');
    expect(seen.map((hints) => hints.toSorted())).toEqual([
      ['other b', 'own a', 'own end'],
      ['other a', 'other end', 'own b'],
      ['other a', 'other b', 'other end'],
    ]);
  });

  test('announces link changes to other replicas without names, and does not send local hints', async () => {
    const [one, two] = await three();
    const seen = heard(two);
    for (const type of ['agent_linked', 'agent_changed'] as const) one.publish({ type, node_id: 'a' });
    one.publishHere(work('c'));
    one.publish(work('d'));
    await expect.poll(() => seen).toEqual(['other links_changed', 'other d']);
  });

  test('sends many hints in few messages, none of which is too large', async () => {
    const [one, two] = await three();
    const seen = heard(two);
    const before = one.state.sent;
    const started = systemClock.monotonic();
    for (let count = 0; count < 20_000; count++) one.publish(work(`agent-${count}`));
    await expect.poll(() => seen.length).toBe(20_000);
    expect(seen.at(-1)).toBe('other agent-19999');
    // A replica also sends a message in each second without others.
    const seconds = (systemClock.monotonic() - started) / 1_000;
    expect(one.state.sent - before).toBeLessThan(40 + seconds);
  });

  test('announces lost hints after a NATS outage, and recovers automatically', async () => {
    const [one, two, three_] = await three();
    const seen = [two, three_].map(heard);
    await fleet.server.kill();
    await expect.poll(() => [one, two, three_].some(({ state }) => state.isConnected)).toBe(false);
    one.publish(work('lost'));
    await fleet.server.start();
    await fleet.isComplete();
    one.publish(work('after'));
    for (const hints of seen) {
      await expect.poll(() => hints).toContain('other after');
      await expect.poll(() => hints).toContain('other hints_lost');
      expect(hints).not.toContain('other lost');
    }
  });

  test('announces lost hints even if only the sender was disconnected', async () => {
    const secret = fleet.secret;
    const own = randomBytes(16).toString('hex');
    const two = fleet.join();
    const seen = heard(two);
    // A sender whose messages the test can drop.
    const { client } = await eavesdrop();
    const seal = new Seal(secret, own);
    const send = (to: string, message: object) =>
      client.publish(
        `muster.test.${to === everyone ? 'all' : to}`,
        seal.seal(to, Buffer.from(JSON.stringify(message))),
      );
    const refused: string[] = [];
    client.subscribe(`muster.test.${own}`, {
      callback: (_, { data }) => {
        const opened = seal.open(own, Buffer.from(data));
        if (typeof opened === 'string') throw new Error(opened);
        const { type, nonce, id, code } = JSON.parse(opened.plain.toString());
        if (type === 'refusal') refused.push(`${id} ${code}`);
        if (type === 'greeting') send(fleet.idOf(two), { type: 'numbers', nonce, all: seal.sentTo(everyone) });
      },
    });
    await expect.poll(() => two.state.isConnected).toBe(true);
    await client.flush();
    // Hints from a process whose message numbers are unknown may be old.
    send(everyone, { type: 'hints', hints: [work('early')] });
    const until = systemClock.now() + 60_000;
    send(fleet.idOf(two), { type: 'ask', id: 'early', topic: double.topic, until, question: { number: 1 } });
    await expect.poll(() => refused).toEqual(['early unknown_sender']);
    await expect.poll(() => seen).toEqual(['other hints_lost']);
    expect(two.state.ignored.unknown_sender).toBe(2);
    send(everyone, { type: 'hints', hints: [work('a'), { type: 'of a later release' }] });
    seal.skip(everyone);
    send(everyone, { type: 'hints', hints: [work('b')] });
    send(everyone, { type: 'of a later release' });
    await expect.poll(() => two.state.ignored.unknown_message).toBe(1);
    await expect.poll(() => seen).toEqual(['other hints_lost', 'other a', 'other b', 'other hints_lost']);
    expect(two.state.gaps).toBe(1);
  });

  test('announces lost hints once after another replica was killed, and announces none when a replica starts', async () => {
    let ahead = 0;
    const time = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
    const one = fleet.join({ clock: time });
    const seen = heard(one);
    await expect.poll(() => one.state.isConnected).toBe(true);
    const late = fleet.join();
    await fleet.isComplete();
    late.publish(work('a'));
    await expect.poll(() => seen).toEqual(['other a']);
    await late.close();
    ahead = 10_000;
    await expect.poll(() => one.hears(fleet.idOf(late))).toBe(false);
    await expect.poll(() => seen).toEqual(['other a', 'other hints_lost']);
  });

  test('accepts no message that NATS repeats, redirects, changes, or forges', async () => {
    const { client, messages } = await eavesdrop();
    const [one, two] = await three();
    const seen = heard(two);
    one.publish(work('a'));
    await expect.poll(() => seen).toEqual(['other a']);
    await expect.poll(() => messages.length).toBeGreaterThan(8);
    const recorded = [...messages];
    const direct = `muster.test.${fleet.idOf(two)}`;
    const before = two.state;
    for (const { subject, data } of recorded) client.publish(subject, data);
    await expect.poll(() => two.state.ignored.repeated).toBeGreaterThan(before.ignored.repeated);
    for (const { data } of recorded.filter(({ subject }) => subject.endsWith('.all'))) client.publish(direct, data);
    client.publish(
      direct,
      recorded[0]!.data.map((byte, index) => (index === 30 ? byte ^ 1 : byte)),
    );
    client.publish(direct, recorded[0]!.data.subarray(0, 30));
    client.publish(direct, Buffer.alloc(300_000, 1));
    client.publish(direct, 'hello');
    client.publish(direct, new Seal(randomBytes(32), fleet.idOf(one)).seal(fleet.idOf(two), Buffer.from('{}')));
    await expect.poll(() => two.state.ignored.truncated).toBe(2);
    await expect.poll(() => two.state.ignored.forged).toBeGreaterThan(2);
    expect(two.state.ignored.oversized).toBe(1);
    one.publish(work('b'));
    await expect.poll(() => seen).toEqual(['other a', 'other b']);
    // A replica that starts later accepts no message that was sent before it started.
    const late = fleet.join();
    const heardLate = heard(late);
    await fleet.isComplete();
    for (const { subject, data } of recorded) client.publish(subject, data);
    one.publish(work('c'));
    await expect.poll(() => heardLate).toContain('other c');
    expect(heardLate).not.toContain('other a');
    // No message reveals its content.
    expect(messages.some(({ data }) => Buffer.from(data).includes('hints'))).toBe(false);
  });

  test('ignores a process of another fleet', async () => {
    const [one, two] = [fleet.join(), fleet.join()];
    await fleet.isComplete();
    const stranger = fleet.join({ secret: randomBytes(32) });
    const seen = [two, stranger].map(heard);
    await expect.poll(() => two.state.ignored.forged).toBeGreaterThan(0);
    stranger.publish(work('stranger'));
    one.publish(work('a'));
    await expect.poll(() => seen[0]).toEqual(['other a']);
    expect(seen[1]).toEqual(['own stranger']);
    await expect(stranger.ask(fleet.idOf(two), double, { number: 1 }, aMinute)).rejects.toThrow('cannot be reached');
  });

  test('delivers a question to one replica, and returns its answer', async () => {
    const [one, two, three_] = await three();
    two.answer(double, async ({ number }, { from }) => {
      if (number === 0) throw new MusterError('agent_not_found', 'no such number');
      if (number < 0) throw new Error('a fault');
      return from === fleet.idOf(one) ? { doubled: number * 2 } : ({ doubled: 'none' } as never);
    });
    const to = fleet.idOf(two);
    expect(await Promise.all([1, 2, 3].map((number) => one.ask(to, double, { number }, aMinute)))).toEqual([
      ...[{ doubled: 2 }, { doubled: 4 }, { doubled: 6 }],
    ]);
    await expect(one.ask(to, double, { number: 0 }, aMinute)).rejects.toEqual(
      new MusterError('agent_not_found', 'no such number'),
    );
    await expect(one.ask(to, double, { number: -1 }, aMinute)).rejects.toMatchObject({ reason: 'failed' });
    await expect(one.ask(to, double, { number: 'x' as never }, aMinute)).rejects.toMatchObject({ reason: 'failed' });
    await expect(three_.ask(to, double, { number: 1 }, aMinute)).rejects.toMatchObject({ reason: 'failed' });
    await expect(two.ask(fleet.idOf(one), double, { number: 1 }, aMinute)).rejects.toMatchObject({ reason: 'failed' });
    await expect(one.ask('f'.repeat(32), double, { number: 1 }, aMinute)).rejects.toMatchObject({
      reason: 'unreachable',
    });
    const large = { number: 1, text: 'x'.repeat(300_000) };
    await expect(one.ask(to, double, large, aMinute)).rejects.toThrow('the ask is larger than 262144 bytes');
  });

  test('ends a question at its deadline on both sides, and when the connection is lost', async () => {
    const clock = new ManualClock();
    const time = { now: () => clock.now(), monotonic: systemClock.monotonic, after: systemClock.after };
    const [one, two] = [fleet.join({ clock: time }), fleet.join({ clock: time })];
    await fleet.isComplete();
    const signals: AbortSignal[] = [];
    two.answer(double, (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const to = fleet.idOf(two);
    await expect(one.ask(to, double, { number: 1 }, { milliseconds: 200 })).rejects.toMatchObject({
      reason: 'timeout',
    });
    await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true]);
    // A question that NATS delays beyond the deadline is not answered.
    const late = one.ask(to, double, { number: 2 }, { milliseconds: 500 });
    clock.jump(501);
    await expect(late).rejects.toMatchObject({ reason: 'timeout' });
    expect(signals).toHaveLength(1);
    const open = one.ask(to, double, { number: 3 }, aMinute);
    await expect.poll(() => signals).toHaveLength(2);
    const refused = expect(open).rejects.toMatchObject({ reason: 'disconnected' });
    await fleet.server.kill();
    await refused;
  });

  test('names the replicas from which no message has arrived for ten seconds', async () => {
    let stopped: number | null = null;
    const time = { ...systemClock, monotonic: () => stopped ?? systemClock.monotonic() };
    const [one, two] = [fleet.join({ clock: time }), fleet.join()];
    await fleet.isComplete();
    // An integer, because differences between fractions are not exact.
    const since = Math.round(systemClock.monotonic());
    stopped = since;
    let looks = 0;
    one.expect(() => {
      looks++;
      return [
        { incarnation: fleet.idOf(two), name: 'two' },
        { incarnation: 'f'.repeat(32), name: 'three' },
      ];
    });
    await expect.poll(() => looks).toBeGreaterThan(1);
    stopped = since + 9_999;
    expect(one.state.unheard).toEqual([]);
    stopped = since + 10_000;
    expect(one.state.unheard).toEqual(['three']);
  });
});

describe('the connection with NATS', () => {
  beforeEach(({ skip }) => {
    const reason = natsMissing();
    if (reason !== null) skip(reason);
  });

  const reasons = (entries: unknown[]) =>
    (entries as { reason?: string }[]).flatMap(({ reason }) => (reason === undefined ? [] : [reason]));

  /** Starts a server with a certificate for these names, and a user. */
  const startSecured = async (...hosts: string[]) => {
    const server = new NatsServer(`
      tls { cert_file: "FOLDER/cert.pem", key_file: "FOLDER/key.pem" }
      authorization { users: [
        { user: muster, password: "right", permissions: { publish: "muster.>", subscribe: "muster.>" } }
      ] }
    `);
    const fleet = new NatsFleet(server);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const certificate = await selfSigned(privateKey, { commonName: 'nats', hosts, days: 30 });
    const file = (name: string, content: string) => {
      writeFileSync(join(server.folder, name), content);
      return join(server.folder, name);
    };
    file('key.pem', privateKey.export({ format: 'pem', type: 'pkcs8' }) as string);
    const caFile = file('cert.pem', certificate);
    const [right, wrong] = [file('right', 'muster:right\n'), file('wrong', 'muster:wrong\n')];
    await server.start();
    const url = server.url.replace('nats:', 'tls:');
    /** Returns why a replica has no connection. */
    const why = async (settings: object) => {
      const entries: unknown[] = [];
      const bus = fleet.join({ settings: { url, caFile, credentialsFile: right, ...settings }, entries });
      await expect.poll(() => reasons(entries)).not.toEqual([]);
      await bus.close();
      return reasons(entries)[0];
    };
    return { fleet, url, caFile, right, wrong, why };
  };

  test('connects with TLS and a password, and reports why it cannot connect', async ({ onTestFinished }) => {
    const { fleet, url, caFile, right, wrong, why } = await startSecured('127.0.0.1', 'localhost');
    onTestFinished(() => fleet.end());
    const one = fleet.join({ settings: { url, caFile, credentialsFile: right } });
    const two = fleet.join({
      settings: { url: url.replace('127.0.0.1', 'localhost'), caFile, credentialsFile: right },
    });
    await fleet.isComplete();
    const seen = heard(two);
    one.publish(work('a'));
    await expect.poll(() => seen).toContain('other a');
    expect(await why({ credentialsFile: wrong })).toBe('NATS refuses the credentials: check nats.credentials_file');
    expect(await why({ credentialsFile: null })).toBe('NATS refuses the credentials: check nats.credentials_file');
    expect(await why({ caFile: null })).toMatch(/self.signed certificate/);
    expect(await why({ url: fleet.server.url, caFile: null })).toBeDefined();
    expect(() => fleet.join({ settings: { url, caFile: '/missing', credentialsFile: right } })).toThrow(
      'nats.ca_file /missing cannot be read: ',
    );
  });

  test('connects with the configuration in docs/replicas.md', async ({ onTestFinished }) => {
    const docs = readFileSync(join(import.meta.dirname, '../../../docs/replicas.md'), 'utf8');
    const page = docs.replaceAll('nats.example', 'localhost');
    const block = (language: string) => new RegExp(`^ *\`\`\`${language}\\n(.*?)^ *\`\`\``, 'ms').exec(page)![1]!;
    const config = block('nats')
      .replaceAll('/etc/nats/', 'FOLDER/')
      .replace(/^ *listen: .*$/m, '');
    const server = new NatsServer(config);
    const fleet = new NatsFleet(server);
    onTestFinished(() => fleet.end());
    execFileSync('sh', ['-euc', block('sh')], {
      cwd: server.folder,
      stdio: 'pipe',
    });
    const credentialsFile = join(server.folder, 'credentials');
    writeFileSync(credentialsFile, 'muster:CHANGE_ME\n');
    await server.start();
    const url = `tls://localhost:${server.port}`;
    const settings = { url, credentialsFile, caFile: join(server.folder, 'ca.crt') };
    const [one, two] = [fleet.join({ settings }), fleet.join({ settings })];
    await fleet.isComplete();
    const seen = heard(two);
    one.publish(work('a'));
    await expect.poll(() => seen).toContain('other a');
  });

  test('refuses a certificate for another name', async ({ onTestFinished }) => {
    const { fleet, url, why } = await startSecured('nats.example');
    onTestFinished(() => fleet.end());
    expect(await why({})).toMatch("IP: 127.0.0.1 is not in the cert's list");
    expect(await why({ url: url.replace('127.0.0.1', 'localhost') })).toMatch("Host: localhost. is not in the cert's");
  });

  test('requires TLS if the URL specifies it, and a sufficient maximum message size', async ({ onTestFinished }) => {
    const fleet = new NatsFleet(new NatsServer('max_payload: 65536'));
    onTestFinished(() => fleet.end());
    await fleet.server.start();
    const entries: unknown[][] = [[], []];
    fleet.join({ entries: entries[0]! });
    fleet.join({ entries: entries[1]!, settings: { url: fleet.server.url.replace('nats:', 'tls:') } });
    await expect.poll(() => reasons(entries[0]!)[0]).toMatch('max_payload is 65536 bytes; set it to at least 262185');
    await expect.poll(() => reasons(entries[1]!)[0]).toMatch("does not support 'tls'");
  });

  test('reconnects if NATS refuses each message, and reports the reason once', async ({ onTestFinished }) => {
    const fleet = new NatsFleet(
      new NatsServer(
        'authorization { users: [ { user: u, password: p, permissions: { publish: "none", subscribe: ">" } } ] }',
      ),
    );
    onTestFinished(() => fleet.end());
    await fleet.server.start();
    const credentialsFile = join(fleet.server.folder, 'credentials');
    writeFileSync(credentialsFile, 'u:p');
    const entries: unknown[] = [];
    fleet.join({ entries, settings: { credentialsFile } });
    const connections = () => entries.filter((entry) => (entry as { message: string }).message === 'connected to NATS');
    await expect.poll(() => connections().length).toBeGreaterThan(2);
    expect(reasons(entries)).toEqual([expect.stringMatching(/^Permissions Violation for Publish/i)]);
  });

  test('reconnects automatically, and reports the reason once', async ({ onTestFinished }) => {
    const server = new NatsServer();
    const fleet = new NatsFleet(server);
    onTestFinished(() => fleet.end());
    await server.start();
    await server.kill();
    const entries: unknown[] = [];
    const bus = fleet.join({ entries });
    await expect.poll(() => reasons(entries)).not.toEqual([]);
    // Further attempts fail for the same reason.
    await sleep(1_500);
    expect(reasons(entries)).toEqual([expect.stringContaining('connection refused')]);
    await server.start();
    await expect.poll(() => bus.state.isConnected).toBe(true);
    expect(entries).toHaveLength(2);
  });
});
