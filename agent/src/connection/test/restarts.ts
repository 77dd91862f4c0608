import { limits } from '@muster/protocol/wire';
import type { backOff, LinkEnd, Waits } from '../backoff.ts';

/** Simulates agents and a restarting orchestrator. Only the backoff is real. */

/** Number of agents that a slow orchestrator admits per second. */
const admittedPerSecond = 250;
/** Maximum number of sockets waiting for their handshake. Further sockets are dropped immediately. */
const waitingSockets = 2_048;
const tickMs = 10;

interface Phase {
  /** Milliseconds for which the port is open. */
  upMs: number;
  /** Whether the orchestrator drains, and therefore sends a reconnect delay. Otherwise, it is killed. */
  drains: boolean;
  /** Milliseconds for which the port is closed. */
  downMs: number;
}

interface SimulatedAgent {
  waits: Waits;
  /** When the link started; null without a link. */
  linkedAt: number | null;
}

/** Returns a deterministic generator of numbers in [0, 1) (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns two to eight restarts within a minute. */
function phasesOf(random: () => number): Phase[] {
  const phases: Phase[] = [];
  const count = 2 + Math.floor(random() * 7);
  for (let at = 0; phases.length < count && at < 60_000; ) {
    const phase = {
      upMs: phases.length === 0 ? 3_600_000 : 100 + random() * 15_000,
      drains: random() < 0.5,
      downMs: 200 + random() * 15_000,
    };
    phases.push(phase);
    at += (phases.length === 1 ? 0 : phase.upMs) + phase.downMs;
  }
  return phases;
}

/**
 * Simulates several restarts.
 * @param options.late probability that an admitted agent is refused because its hello is read too late
 * @returns for each agent, the milliseconds between the last start of the orchestrator and the agent's next link
 */
export function restarts(options: {
  seed: number;
  agents: number;
  backOff: typeof backOff;
  first: Waits;
  late?: number;
}): number[] {
  const random = randomOf(options.seed);
  const phases = phasesOf(random);
  const agents = Array.from({ length: options.agents }, (): SimulatedAgent => ({ waits: options.first, linkedAt: 0 }));
  const dials = new Map<number, SimulatedAgent[]>();
  let now = 0;
  const ended = (agent: SimulatedAgent, retryAfterSecs: number | null, refused: LinkEnd['refused'] = null) => {
    const livedMs = agent.linkedAt === null ? 0 : Math.max(1, now - agent.linkedAt);
    agent.linkedAt = null;
    const next = options.backOff(agent.waits, { livedMs, retryAfterSecs, refused }, random(), now);
    agent.waits = next.waits;
    const timeoutMs = refused === 'hello_timeout' ? limits.helloTimeoutMs : 0;
    const tick = Math.ceil((now + timeoutMs + next.waitMs) / tickMs);
    const others = dials.get(tick);
    if (others) others.push(agent);
    else dials.set(tick, [agent]);
  };
  let queue: SimulatedAgent[] = [];
  let credit = 0;
  /** Advances to a time, or until all agents have a link. */
  const pass = (until: number, isUp: boolean) => {
    for (; now < until; now += tickMs) {
      const tick = Math.ceil(now / tickMs);
      const dialling = dials.get(tick) ?? [];
      dials.delete(tick);
      for (const agent of dialling)
        if (isUp && queue.length < waitingSockets) queue.push(agent);
        else ended(agent, null);
      credit = isUp ? Math.min(32, credit + (admittedPerSecond * tickMs) / 1000) : 0;
      for (; credit >= 1 && queue.length > 0; credit--) {
        const agent = queue.shift()!;
        if (random() < (options.late ?? 0)) ended(agent, null, 'hello_timeout');
        else agent.linkedAt = now;
      }
      if (until === Number.POSITIVE_INFINITY && agents.every(({ linkedAt }) => linkedAt !== null)) return;
    }
  };
  for (const { upMs, drains, downMs } of phases) {
    if (now === 0) now = upMs;
    else pass(now + Math.ceil(upMs / tickMs) * tickMs, true);
    now = Math.ceil(now / tickMs) * tickMs;
    const waiting = new Set(queue);
    queue = [];
    for (const agent of agents)
      if (agent.linkedAt !== null)
        ended(agent, drains ? Math.round((1 + random() * Math.max(1, options.agents / 500)) * 10) / 10 : null);
      else if (waiting.has(agent)) ended(agent, null);
    pass(now + Math.ceil(downMs / tickMs) * tickMs, false);
  }
  const backAt = now;
  pass(Number.POSITIVE_INFINITY, true);
  return agents.map(({ linkedAt }) => linkedAt! - backAt);
}
