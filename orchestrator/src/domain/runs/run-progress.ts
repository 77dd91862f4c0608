import { openResults, openRuns } from '../../store/queries/runs.ts';
import type { Context } from '../shared/context.ts';
import type { RunShards } from './run-shards.ts';

/** Finds the runs in which outcomes were recorded, by the number of outcomes that are missing. */
export class RunProgress {
  readonly #db: Context['db'];
  readonly #shards: Pick<RunShards, 'isPreferred'>;
  #missing: ReadonlyMap<string, number> = new Map();

  constructor({ db }: Pick<Context, 'db'>, shards: Pick<RunShards, 'isPreferred'>) {
    this.#db = db;
    this.#shards = shards;
  }

  /** @returns this process's runs whose number of missing outcomes has changed since the last call */
  async read(): Promise<string[]> {
    const former = this.#missing;
    const open = (await this.#db.all(openRuns, {})).map(({ run_id }) => run_id);
    const own = open.filter((runId) => this.#shards.isPreferred(runId));
    const rows = own.length === 0 ? [] : await this.#db.all(openResults, { run_ids: own });
    const counts = new Map(rows.map(({ run_id, count }) => [run_id, Number(count)]));
    this.#missing = new Map(own.map((id) => [id, counts.get(id) ?? 0]));
    return own.filter((id) => former.get(id) !== this.#missing.get(id));
  }
}
