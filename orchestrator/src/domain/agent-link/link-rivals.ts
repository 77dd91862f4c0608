import { setTimeout as sleep } from 'node:timers/promises';
import type { Hello } from '@muster/protocol/wire';
import { z } from 'zod';
import type { Ask } from '../../bus/asks.ts';
import { answerProbe, askProbe, linkOf } from '../../store/queries/agents/agent-links.ts';
import { isLiveReplica } from '../../store/replicas.ts';
import { statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import { recordClone } from './agent-incidents.ts';
import type { Caller } from './agent-link.ts';
import type { Refusal } from './refusal.ts';

/**
 * Decides between two links of one agent on two replicas. The agent process that holds the older link may move it. For
 * another process, the replica with the older link checks whether its agent still answers, as an orchestrator without
 * replicas does. Otherwise, two machines with the same key would repeatedly replace each other's link. Replicas probe
 * each other's links through the bus. If no answer arrives, the probe request and its answer are written to the agent's
 * row.
 */

/** Asks the replica that has an agent's link whether the agent answers. If it does not, the replica closes the link. */
export const probeLink: Ask<{ node_id: string }, { answered: boolean }> = {
  topic: 'link/probe',
  question: z.object({ node_id: z.string().max(64) }),
  answer: z.object({ answered: z.boolean() }),
};

/** Milliseconds to wait for an answer through the bus: five seconds for the agent, and one for transmission. */
const askMs = 6_000;
/** Milliseconds after which the probe request is also written to the row. */
const askAloneMs = 2_000;

/** Milliseconds between reads of the answer. */
const pollMs = 250;
/**
 * Milliseconds to wait for an answer: two seconds before the probe request is written to the row, one until the other
 * replica reads it, and five for the agent.
 */
const waitMs = 8_000;
/**
 * Milliseconds after which an unanswered probe request of another replica is replaced: one second until the request is
 * read, and five for the agent.
 */
const staleMs = 6_000;
/** Seconds after which the agent retries if the other replica did not answer. */
const retrySecs = 5;

/**
 * Prefix of the instance of a link that uses a previous key. A link that uses the current key replaces such a link
 * without a probe.
 */
const previousKey = 'previous key ';

/** Returns the text that identifies the agent process in the claim of its link. */
export const claimInstance = (
  { isReplica }: Pick<Context, 'isReplica'>,
  { instance_id }: Pick<Hello, 'instance_id'>,
  { valid_until }: Pick<Caller, 'valid_until'>,
): string => (isReplica && valid_until !== null ? previousKey : '') + instance_id;

const answered = (probe: string): string => `${probe} answered`;

/** Waits until the agent has no other link. @returns null, or the refusal of the new link */
export async function judgeRival(
  context: Context,
  hello: Hello,
  { node_id, remote_ip, valid_until }: Caller,
): Promise<Refusal | null> {
  const probe = context.newId();
  const startedAt = context.steadyNow();
  let pending = { probe: null as string | null, since: startedAt };
  const asked = new AskedOwner(context, node_id);
  for (const until = startedAt + waitMs; ; await asked.answerOr(sleep(pollMs))) {
    const link = await context.db.get(linkOf, { node_id });
    const owner = link?.link_incarnation ?? null;
    if (!link || owner === null || owner === context.incarnation) return null;
    const { link_instance } = link;
    if (link_instance === hello.instance_id || link_instance === previousKey + hello.instance_id) return null;
    if (valid_until === null && link_instance?.startsWith(previousKey)) return null;
    if (!(await context.db.get(isLiveReplica, { incarnation: owner }))) return null;
    asked.begin(owner, link_instance);
    if (link.link_probe === answered(probe) || asked.hasAnswered) {
      await recordClone(context, node_id, remote_ip);
      const message = 'another process with this key is connected; give each machine its own data directory';
      return { code: 'cloned', message, retry_after_secs: null };
    }
    if (context.steadyNow() >= until) {
      const message = 'another process with this key was connected, and it is not known whether it still is';
      return { code: 'unavailable', message, retry_after_secs: retrySecs };
    }
    if (asked.isOpen && context.steadyNow() - startedAt < askAloneMs) continue;
    if (link.link_probe !== pending.probe) pending = { probe: link.link_probe, since: context.steadyNow() };
    const isStale = link.link_probe !== probe && context.steadyNow() - pending.since >= staleMs;
    if (!isUnanswered(link.link_probe) || isStale)
      await context.db.write({
        name: 'agents/ask link',
        statements: [statement(askProbe, { node_id, incarnation: owner, probe })],
      });
  }
}

/** Probes an agent's link through the bus, at the replica that holds the link. */
class AskedOwner {
  readonly #context: Pick<Context, 'bus'>;
  readonly #nodeId: string;
  /** The link that is being probed. */
  #about: string | null = null;
  #asking: Promise<void> | null = null;
  /** Whether the agent answers on that link. */
  hasAnswered = false;

  constructor(context: Pick<Context, 'bus'>, nodeId: string) {
    this.#context = context;
    this.#nodeId = nodeId;
  }

  /** Whether an answer may still arrive. */
  get isOpen(): boolean {
    return this.#asking !== null;
  }

  /** Probes a link, unless it was already probed. */
  begin(owner: string, instance: string | null): void {
    const about = `${owner} ${instance}`;
    if (this.#about === about) return;
    this.#about = about;
    this.hasAnswered = false;
    const asking = this.#context.bus
      .ask(owner, probeLink, { node_id: this.#nodeId }, { milliseconds: askMs })
      .then(
        ({ answered }) => answered,
        // If the bus fails, the probe request in the row is answered instead.
        () => false,
      )
      .then((answered) => {
        if (this.#asking !== asking) return;
        this.#asking = null;
        this.hasAnswered = answered;
      });
    this.#asking = asking;
  }

  /** Waits for the answer or for `other`, whichever comes first. */
  async answerOr(other: Promise<unknown>): Promise<void> {
    await Promise.race(this.#asking === null ? [other] : [other, this.#asking]);
  }
}

/**
 * Records that the agent answered on its link. If the agent does not answer, its link is closed instead, so no record
 * is needed.
 */
export async function recordAnswer({ db }: Pick<Context, 'db'>, node_id: string, probe: string): Promise<void> {
  const answer = statement(answerProbe, { node_id, probe, answer: answered(probe) });
  await db.write({ name: 'agents/answer', statements: [answer] });
}

/** Reports whether a row's `link_probe` is a probe request without an answer. */
export const isUnanswered = (probe: string | null): probe is string => probe !== null && !probe.endsWith(' answered');
