import type { OffReason } from '@muster/protocol/http';
import { isEmpty, matchesSelector, type Selector } from '@muster/protocol/selector';
import type { Hint } from '../../bus/bus.ts';
import { fromJson } from '../../store/json-text.ts';
import { agentsForSelectors } from '../../store/queries/agents/agents.ts';
import { requireSelector } from '../agents/agents.ts';
import type { Context } from '../shared/context.ts';
import type { PageRequest } from '../shared/page.ts';
import { byUrgency, findOff, isOff, type Standing } from './standings.ts';

export interface OffFilter {
  /** A selector. */
  readonly filter?: string | undefined;
  /** Node id or name. */
  readonly agent?: string | undefined;
  readonly reason?: OffReason | undefined;
  readonly include_accepted?: boolean | undefined;
  readonly include_outdated?: boolean | undefined;
}

/**
 * Ranks the agents that need attention. The database cannot return one page of the ranking without computing all of it,
 * so all pages of one listing share one computation. A first page is always current. A later page may be up to {@link
 * maxBehindMs} behind.
 */
export interface OffRanking {
  /** Returns the agents of a page, most urgent first. */
  read(request: PageRequest & OffFilter): Promise<Standing[]>;
}

/**
 * Milliseconds for which later pages use a ranking even after a change, so that pages share a ranking in a busy fleet
 * too.
 */
const maxBehindMs = 1_000;
/** Maximum age of a ranking. Some changes, such as the retention of operations, send no hint. */
const maxAgeMs = 30_000;
/** Maximum number of filters whose matches are stored with a ranking. The oldest is evicted. */
const maxWalks = 8;
/** Maximum number of agents matched before yielding to the event loop. */
const agentsPerTurn = 500;

/** Hints after which an agent may have another rank, or may match another filter. */
const changing: ReadonlySet<Hint['type']> = new Set([
  ...(['operation_ended', 'agent_linked', 'agent_changed', 'agent_attributes', 'agent_removed', 'audited'] as const),
]);

interface Ranking {
  readonly all: Promise<readonly Standing[]>;
  /** Time of the computation, in monotonic milliseconds. */
  readonly at: number;
  readonly outsideChanges: number;
  readonly walks: Map<string, Promise<Walk>>;
  isCurrent: boolean;
}

export function createOffRanking(context: Context): OffRanking {
  const { db, bus, steadyNow } = context;
  let last: Ranking | null = null;
  bus.subscribe(({ type }) => {
    if (last === null) return;
    if (changing.has(type)) last.isCurrent = false;
    // Frees the memory. Hints arrive frequently, so no timer is needed.
    if (steadyNow() - last.at >= maxAgeMs) last = null;
  });

  function isUsable({ at, isCurrent, outsideChanges }: Ranking): boolean {
    const age = steadyNow() - at;
    return age < maxBehindMs || (age < maxAgeMs && isCurrent && outsideChanges === db.outsideChanges());
  }

  function rank(): Ranking {
    const ranking: Ranking = {
      all: findOff(context).then((found) => byUrgency(found.values())),
      ...{ at: steadyNow(), outsideChanges: db.outsideChanges(), walks: new Map(), isCurrent: true },
    };
    last = ranking;
    ranking.all.catch(() => {
      if (last === ranking) last = null;
    });
    return ranking;
  }

  return {
    async read({ limit, offset, ...filter }) {
      const selector = filter.filter === undefined ? null : requireSelector(filter.filter, '/filter');
      const { all, walks } = offset > 0 && last !== null && isUsable(last) ? last : rank();
      const key = keyOf(filter);
      const walk = walks.get(key) ?? all.then((ranked) => new Walk(context, ranked.filter(passes(filter)), selector));
      if (!walks.has(key) && walks.size >= maxWalks) walks.delete(walks.keys().next().value as string);
      walks.set(key, walk);
      return (await walk).read(offset, limit);
    },
  };
}

const keyOf = ({ filter, agent, reason, include_accepted, include_outdated }: OffFilter): string =>
  JSON.stringify([filter ?? null, agent ?? null, reason ?? null, include_accepted === true, include_outdated === true]);

const passes =
  ({ agent, reason, include_accepted, include_outdated }: OffFilter) =>
  (standing: Standing): boolean =>
    (isOff(standing) ||
      (include_accepted === true && standing.drifted) ||
      (include_outdated === true && standing.outdated > 0)) &&
    (reason === undefined || standing.reasons.includes(reason)) &&
    (agent === undefined || standing.node_id === agent || standing.name === agent);

/**
 * Matches ranked agents against a selector. Matches each agent at most once, and only as many agents as the pages need.
 */
class Walk {
  readonly #context: Context;
  readonly #ranked: readonly Standing[];
  readonly #selector: Selector | null;
  readonly #matching: Standing[] = [];
  #next = 0;
  #matched: Promise<unknown> = Promise.resolve();

  constructor(context: Context, ranked: readonly Standing[], selector: Selector | null) {
    this.#context = context;
    this.#ranked = ranked;
    this.#selector = selector;
  }

  async read(offset: number, limit: number): Promise<Standing[]> {
    const selector = this.#selector;
    if (selector === null || isEmpty(selector)) return this.#ranked.slice(offset, offset + limit);
    const matched = this.#matched.then(() => this.#match(selector, offset + limit));
    // A later page retries after a failure.
    this.#matched = matched.catch(() => {});
    await matched;
    return this.#matching.slice(offset, offset + limit);
  }

  async #match(selector: Selector, count: number): Promise<void> {
    while (this.#next < this.#ranked.length && this.#matching.length < count) {
      const part = this.#ranked.slice(this.#next, this.#next + agentsPerTurn);
      const node_ids = part.map(({ node_id }) => node_id);
      const rows = await this.#context.db.all(agentsForSelectors, { node_ids });
      const matches = new Set(
        rows
          .filter((row) =>
            matchesSelector(selector, { tags: fromJson(row.tags), attributes: fromJson(row.attributes) }),
          )
          .map(({ node_id }) => node_id),
      );
      this.#matching.push(...part.filter(({ node_id }) => matches.has(node_id)));
      this.#next += part.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
