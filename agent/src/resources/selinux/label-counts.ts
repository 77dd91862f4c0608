import { dirname } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import type { WrongLabel } from '../../host/selinux.ts';

type Body = Pick<ResolvedResource<'selinux-context'>['body'], 'restore' | 'user' | 'range'>;
type Count = { wrong: number; example: string } | null;

interface Watcher {
  count: Count;
  compares: { user: boolean; range: boolean };
}

/** Counts the files with a wrong label for each resource, without storing the list of files. */
export class LabelCounts {
  readonly #watchers = new Map<string, Watcher>();
  /** Watchers by path. A watcher counts the files at or below its path. */
  readonly #byTop = new Map<string, Set<Watcher>>();

  /** @param tops paths of `restore` as restorecon prints them; null for a path that does not exist */
  watch(body: Body, tops: readonly (string | null)[]): void {
    const compares = { user: body.user != null, range: body.range != null };
    const watcher = this.#watchers.get(keyOf(body)) ?? { count: null, compares };
    this.#watchers.set(keyOf(body), watcher);
    for (const top of tops)
      if (top !== null) this.#byTop.set(top, (this.#byTop.get(top) ?? new Set<Watcher>()).add(watcher));
  }

  add({ path, from, to }: WrongLabel): void {
    const reached = new Set<Watcher>();
    for (let top = path; top !== '/' && top !== '.'; top = dirname(top))
      for (const watcher of this.#byTop.get(top) ?? []) reached.add(watcher);
    for (const watcher of reached) {
      const { compares } = watcher;
      // Programs choose the user and the range of new files, such as the categories of a container.
      const differs =
        from?.type !== to.type ||
        (compares.user && from.user !== to.user) ||
        (compares.range && from.range !== to.range);
      if (differs)
        watcher.count = {
          wrong: (watcher.count?.wrong ?? 0) + 1,
          example: watcher.count?.example ?? path.slice(0, 200),
        };
    }
  }

  /**
   * Returns the number of files of a watched resource with a wrong label, and the path of one of them; null if all
   * labels are right.
   */
  of(body: Body): Count {
    return this.#watchers.get(keyOf(body))?.count ?? null;
  }
}

const keyOf = ({ restore, user, range }: Body): string => JSON.stringify([restore, user != null, range != null]);
