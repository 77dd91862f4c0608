import { MusterError } from '@muster/protocol';
import { type ModuleDocument, parseModule, type Requires } from '@muster/protocol/module';
import type { Database } from '../../store/database.ts';
import { fromJson } from '../../store/json-text.ts';
import { moduleRevision, modulesByName } from '../../store/queries/modules.ts';
import { filesOfRevision, folderOf } from './module-files.ts';

/** Revision number by module name. */
export type Revisions = ReadonlyMap<string, number>;

/** Returns the revisions of the given modules, in their order. Omits modules without a revision, such as drafts. */
export const revisionsOf = (modules: readonly string[], revisions: Revisions): Record<string, number> =>
  Object.fromEntries(
    modules.flatMap((name) => {
      const revision = revisions.get(name);
      return revision === undefined ? [] : [[name, revision] as const];
    }),
  );

/** Caches parsed modules by name and revision. A revision never changes, so entries never become outdated. */
export interface ModuleDocuments {
  /**
   * Loads modules in the given order.
   * @param at revisions by name; for other modules, the newest revision is loaded
   * @throws MusterError module_not_found, naming the missing modules
   */
  load(names: readonly string[], at?: Revisions): Promise<ModuleDocument[]>;
  /**
   * Returns the newest revisions of the specified modules and of the modules that they require. Omits missing modules.
   */
  newest(names: readonly string[]): Promise<NewestModules>;
}

export interface NewestModules {
  readonly revisions: Revisions;
  readonly requires: Requires;
}

const maxCached = 200;

export function createModuleDocuments(db: Database): ModuleDocuments {
  const cache = new Map<string, ModuleDocument>();
  const revisions = async (names: readonly string[]): Promise<Revisions> => {
    if (names.length === 0) return new Map();
    const rows = await db.all(modulesByName, { names: [...names] });
    return new Map(rows.map(({ name, revision }) => [name, revision]));
  };
  const newest = async (names: readonly string[]): Promise<NewestModules> => {
    const revisions = new Map<string, number>();
    const requires = new Map<string, readonly string[]>();
    const asked = new Set(names);
    let next = [...asked];
    while (next.length > 0) {
      const rows = await db.all(modulesByName, { names: next });
      const required = rows.flatMap(({ name, revision, requires: text }) => {
        revisions.set(name, revision);
        const needed = fromJson(text);
        if (needed.length > 0) requires.set(name, needed);
        return needed;
      });
      next = [...new Set(required)].filter((name) => !asked.has(name));
      for (const name of next) asked.add(name);
    }
    return { revisions, requires };
  };
  return {
    newest,
    async load(names, at) {
      const fixed = names.every((name) => at?.has(name)) ? at : undefined;
      const found = fixed ?? new Map([...(await revisions(names)), ...(at ?? [])]);
      const missing = names.filter((name) => !found.has(name));
      if (missing.length > 0)
        throw new MusterError(
          'module_not_found',
          `there is no module ${missing.map((name) => JSON.stringify(name.slice(0, 128))).join(', ')}`,
        );
      return Promise.all(
        names.map(async (name) => {
          const revision = found.get(name) as number;
          const key = `${revision}/${name}`;
          const known = cache.get(key);
          if (known) return known;
          // Revisions of removed modules are kept, because earlier runs still use them.
          const text = await db.get(moduleRevision, { name, revision });
          if (!text) throw new MusterError('module_not_found', `module ${name} has no revision ${revision}`);
          const files = await filesOfRevision({ db }, name, revision);
          const parsed = parseModule(text.content, await folderOf({ db }, text.content, files));
          // A newer release may validate more strictly than the release that accepted the upload.
          if (!parsed.ok)
            throw new MusterError(
              'module_invalid',
              `module ${name} is not valid in this release; upload a corrected module`,
              parsed.faults,
            );
          if (cache.size >= maxCached) cache.delete(cache.keys().next().value as string);
          cache.set(key, parsed.module);
          return parsed.module;
        }),
      );
    },
  };
}
