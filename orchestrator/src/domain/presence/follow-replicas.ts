import type { Clock } from '../../../../lib/src/clock.ts';
import { deleteStaleContacts, linkOf, putContacts, workOfProcess } from '../../store/queries/agents/agent-links.ts';
import type { AgentLinks } from '../agent-link/agent-link.ts';
import { isUnanswered, probeLink, recordAnswer } from '../agent-link/link-rivals.ts';
import type { Waiting } from '../operations/operation-waiting.ts';
import type { SignIn } from '../operators/sign-in.ts';
import { ReplicaClosed } from '../replicas/replicas.ts';
import type { RunConductor } from '../runs/run-conductor.ts';
import { type Context, seconds } from '../shared/context.ts';
import type { Terminals } from '../terminals/terminals.ts';
import { type Contact, encodeContacts } from './contacts.ts';
import type { LinkChange, LinkView } from './link-view.ts';

/**
 * Follows other replicas by reading the database: which agents are connected where, changes to the agents of this
 * process, and work for them.
 */

/** Milliseconds between records of when this process last heard from its agents. */
const contactsMs = 15_000;

/** This process's agent links, according to the gateway. */
export interface OwnLinks {
  /** The agents with an open link. */
  readonly nodeIds: readonly string[];
  /** Reports whether the agent has a link that is open or being admitted. */
  has(nodeId: string): boolean;
  /** Sends the agent its operations or cancellations. */
  wake(nodeId: string, work: { waits: boolean; cancels: boolean }): void;
  /** Closes the agent's open link, because another process has a newer one. */
  cut(nodeId: string): void;
  /** Checks whether the agent answers. Closes its link if it does not. @returns whether it answered */
  probe(nodeId: string): Promise<boolean>;
  contacts(): Contact[];
}

export interface FollowerParts {
  readonly context: Context;
  readonly view: LinkView;
  readonly local: OwnLinks;
  readonly links: Pick<AgentLinks, 'closed'>;
  readonly waiting: Pick<Waiting, 'poll'>;
  readonly signIn: Pick<SignIn, 'recheck'>;
  readonly terminals: Pick<Terminals, 'tokenHashes'>;
  readonly conductor: Pick<RunConductor, 'followOthers'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called when another process has closed this process, which must then exit. */
  readonly onClosed: (reason: Error) => void;
}

/** Follows other replicas. */
export class ReplicaFollower {
  readonly #parts: FollowerParts;
  #contactsAt = Number.NEGATIVE_INFINITY;
  /** Changes that were read, oldest first, and must still be applied to the links of this process. */
  readonly #pending: LinkChange[] = [];
  /** Agents that are being probed for another replica. */
  readonly #probing = new Set<string>();
  /** Tasks whose last attempt failed, so that an outage is logged once. */
  readonly #failing = new Set<string>();

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Answers other replicas' probes of this process's agent links. @returns a function that stops answering */
  answerProbes(): () => void {
    const { context, local } = this.#parts;
    return context.bus.answer(probeLink, async ({ node_id }) => ({ answered: await local.probe(node_id) }));
  }

  /** Reads only the changes of agents' links and records. Never rejects, and must not run during a turn. */
  async turnOfLinks(): Promise<void> {
    await this.#attempt('links', () => this.#followLinks());
  }

  /** Reads all changes since the last turn, and responds to them. Never rejects: the next turn retries. */
  async turn(): Promise<void> {
    const { waiting, signIn, terminals, conductor } = this.#parts;
    await Promise.all([
      this.#attempt('links', () => this.#followLinks()),
      this.#attempt('work', () => this.#findWork()),
      this.#attempt('waiting requests', () => waiting.poll()),
      this.#attempt('sign-in sessions', () => signIn.recheck(terminals.tokenHashes())),
      this.#attempt('runs', () => conductor.followOthers()),
      this.#attempt('contacts', () => this.#exchangeContacts()),
    ]);
  }

  async #attempt(what: string, task: () => Promise<void>): Promise<void> {
    try {
      await task();
      this.#failing.delete(what);
    } catch (error) {
      if (error instanceof ReplicaClosed) this.#parts.onClosed(error);
      if (!this.#failing.has(what))
        this.#parts.context.log.warn({ err: error, what }, 'failed to follow other replicas; will retry');
      this.#failing.add(what);
    }
  }

  async #followLinks(): Promise<void> {
    const { changes, own } = await this.#parts.view.read();
    for (const change of changes) {
      this.#publish(change);
      if (this.#parts.local.has(change.node_id)) this.#pending.push(change);
    }
    // The view returns each change once, so a change stays here until it has been applied.
    for (let change = this.#pending[0]; change !== undefined; change = this.#pending[0]) {
      await this.#apply(change);
      this.#pending.shift();
    }
    if (own !== null) await this.#reconcile(own);
  }

  #publish({ node_id, hint }: LinkChange): void {
    const { bus, presence } = this.#parts.context;
    // The agent may have connected to this process since the read.
    if (hint === null || (hint.type === 'agent_departed' && presence.isConnected(node_id))) return;
    bus.publishHere(hint);
  }

  async #apply(change: LinkChange): Promise<void> {
    const { node_id, link_incarnation } = change;
    if (!this.#parts.local.has(node_id)) return;
    if (link_incarnation !== this.#parts.context.incarnation) await this.#cutIfMoved(node_id);
    else this.#answer(change);
  }

  /** Repairs differences between this process's links and its claims, which remain after a failed write. */
  async #reconcile(own: readonly string[]): Promise<void> {
    const { context, local, links } = this.#parts;
    const claimed = new Set(own);
    for (const nodeId of local.nodeIds) if (!claimed.has(nodeId)) await this.#cutIfMoved(nodeId);
    for (const nodeId of own)
      if (!local.has(nodeId))
        links
          .closed(nodeId, 'the end of the link was not recorded', 0)
          .catch((error: unknown) => context.log.warn({ node_id: nodeId, err: error }, 'failed to release a link'));
  }

  /**
   * Closes the agent's link if another process has a newer one. Reads the row again, because this link may be newer.
   */
  async #cutIfMoved(nodeId: string): Promise<void> {
    const { context, local } = this.#parts;
    const row = await context.db.get(linkOf, { node_id: nodeId });
    if (!row) context.bus.publishHere({ type: 'agent_removed', node_id: nodeId });
    else if (row.link_incarnation !== context.incarnation) local.cut(nodeId);
  }

  /** Checks whether the agent answers, if another replica requested a probe. */
  #answer({ node_id, link_probe }: LinkChange): void {
    if (!isUnanswered(link_probe) || this.#probing.has(node_id)) return;
    const { context, local } = this.#parts;
    this.#probing.add(node_id);
    local
      .probe(node_id)
      .then((answered) => (answered ? recordAnswer(context, node_id, link_probe) : undefined))
      .catch((error: unknown) =>
        context.log.warn({ node_id, err: error }, 'failed to answer a probe request for an agent'),
      )
      .finally(() => this.#probing.delete(node_id));
  }

  async #findWork(): Promise<void> {
    const { context, local } = this.#parts;
    const { db, incarnation } = context;
    for (const { node_id, waits, cancels } of await db.all(workOfProcess, { incarnation }))
      local.wake(node_id, { waits: Number(waits) === 1, cancels: Number(cancels) === 1 });
  }

  async #exchangeContacts(): Promise<void> {
    const { context, view, local, clock } = this.#parts;
    if (clock.monotonic() - this.#contactsAt < contactsMs) return;
    const at = seconds(context.now());
    const contacts = encodeContacts(local.contacts(), at);
    await context.db.alone(putContacts, { incarnation: context.incarnation, at, contacts });
    await context.db.alone(deleteStaleContacts, {});
    await view.readContacts();
    this.#contactsAt = clock.monotonic();
  }
}
