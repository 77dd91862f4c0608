import { setTimeout as sleep } from 'node:timers/promises';
import {
  addOperator,
  type ChainedEvent,
  closeTerminal,
  followEvents,
  getSession,
  logout,
  openTerminal,
  removeOperator,
} from '@muster/protocol/http';
import { EventFrameReader } from '../../client/src/event-frames.ts';
import { newOperator, signIn } from '../client.ts';
import { TerminalScreen } from '../terminal-client.ts';
import { type Clients, patience } from './clients.ts';
import type { Recorder } from './recorder.ts';

/** Clients that follow events, use sessions and rights until they end, and open terminals. */

/** @param event as in a stream or an export */
export function recordEvent(recorder: Recorder, replica: string, stream: string, event: ChainedEvent): void {
  const { place, hash, id, event_type, metadata } = event;
  // Only the events of tag writes are compared by their content.
  const about = event_type === 'agent.tagged' ? JSON.stringify(metadata) : '';
  recorder.record({ type: 'event', at: recorder.now, replica, stream, place, hash, id, about });
}

/** The last position that a stream has received; null before the first frame. */
export interface StreamPlace {
  readonly name: string;
  place: number | null;
}

/** Follows the events of each replica, and resumes after each end. @returns the streams, and a function that ends them */
export function followAll(clients: Clients): { streams: StreamPlace[]; end: () => void } {
  const ending = new AbortController();
  const streams = clients.atReplicas().map(({ name, call }) => {
    const stream: StreamPlace = { name, place: null };
    const follow = async () => {
      while (!ending.signal.aborted) {
        const last_event_id = stream.place === null ? undefined : String(stream.place);
        const reader = new EventFrameReader(last_event_id ?? null);
        try {
          const { body } = await call(followEvents, { query: { last_event_id }, signal: ending.signal });
          for await (const piece of body) {
            for (const { event, data } of reader.feed(piece))
              if (event === 'message') recordEvent(clients.recorder, name, `stream of ${name}`, JSON.parse(data));
            if (reader.lastId !== null) stream.place = Number(reader.lastId);
          }
        } catch {
          // The replica ended, or is not reachable.
        }
        await sleep(200);
      }
    };
    void follow();
    return stream;
  });
  return { streams, end: () => ending.abort() };
}

/** Milliseconds for which ended sessions and rights are tried. */
const triedMs = 4_000;

/** Uses sessions at all replicas, and ends them: by a sign-out, and by the removal of the operator. */
export function endAccess(clients: Clients): void {
  let count = 0;
  clients.repeat(500, async () => {
    const number = count++;
    const admin = clients.throughBalancer();
    const isRemoval = number % 2 === 1;
    const operator = isRemoval ? newOperator() : clients.operator;
    try {
      const added = isRemoval
        ? await admin(addOperator, {
            body: { public_key: operator.publicKey, username: `guest-${number}`, role: 'operator' },
            signal: patience(),
          })
        : null;
      const token = await signIn(clients.throughBalancer(null), operator);
      const access = `${isRemoval ? 'right' : 'session'} ${number}`;
      await tryAccess(clients, token, access, 500);
      if (added) await admin(removeOperator, { params: { operator_id: added.operator_id }, signal: patience() });
      else await clients.throughBalancer(token)(logout, { signal: patience() });
      clients.recorder.record({ type: 'access_ended', at: clients.recorder.now, access });
      await tryAccess(clients, token, access, triedMs);
    } catch {
      // A request failed, so it is unknown whether and when this session ended.
    }
  });
}

async function tryAccess(clients: Clients, token: string, access: string, forMs: number): Promise<void> {
  const replicas = clients.atReplicas(token);
  const until = clients.recorder.now + forMs;
  while (clients.recorder.now < until) {
    await Promise.all(
      replicas.map(({ name, call }) =>
        clients.recorder.call('guest', name, { kind: 'access', access }, () =>
          call(getSession, { signal: patience() }),
        ),
      ),
    );
    await sleep(250);
  }
}

/** Number of lines that a terminal client types, and milliseconds between them. */
const lines = 8;
const lineMs = 300;
/** Milliseconds to wait for the output of a line. */
const outputMs = 5_000;

/**
 * Opens terminals on the agents, types, and records their output.
 * @returns the sessions, with the time at which each was last known to be open
 */
export function useTerminals(clients: Clients, nodes: readonly string[]): Map<string, number> {
  const sessions = new Map<string, number>();
  const { recorder } = clients;
  const { dataDir } = clients.stage.replicas[0]!.orchestrator;
  const call = clients.throughBalancer();
  clients.repeat(500, async () => {
    const params = { node_id: clients.next(nodes) };
    try {
      const { session_id, ws_url } = await call(openTerminal, { params, signal: patience() });
      const screen = await Promise.race([
        TerminalScreen.connect({ dataDir, url: clients.balancerUrl }, ws_url),
        sleep(outputMs).then(() => Promise.reject(new Error('the terminal did not connect'))),
      ]);
      for (let line = 0; line < lines && screen.closed === null; line++) {
        const text = `line${line}=${42 + line}.`;
        screen.type(`echo line${line}=$((40 + 2 + ${line})).\n`);
        if (!(await shows(screen, text))) break;
        recorder.record({ type: 'shown', at: recorder.now, session: session_id, text });
        sessions.set(session_id, recorder.now);
        await sleep(lineMs);
      }
      screen.cut();
      await call(closeTerminal, { params: { session_id }, signal: patience() });
    } catch {
      // The replica of the agent, or the relay, is away.
    }
  });
  return sessions;
}

async function shows(screen: TerminalScreen, text: string): Promise<boolean> {
  for (let waited = 0; waited < outputMs && screen.closed === null; waited += 20) {
    if (screen.bytes.includes(text)) return true;
    await sleep(20);
  }
  return screen.bytes.includes(text);
}
