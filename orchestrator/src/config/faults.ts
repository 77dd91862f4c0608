import { closest } from 'fastest-levenshtein';
import type { z } from 'zod';
import { configSchema, sectionOf } from './schema.ts';

/** Errors in the configuration, described for its author. */
export class ConfigError extends Error {}

/** Describes every error in a configuration, one per line. @param where returns the location of a value */
export function explain(error: z.ZodError, where: (path: readonly PropertyKey[]) => string): string {
  return error.issues
    .map((issue) => {
      const path = issue.path.join('.');
      if (issue.code !== 'unrecognized_keys') return `${where(issue.path)}: ${path}: ${issue.message}`;
      let section: Readonly<Record<string, unknown>> | null = configSchema.shape;
      for (const key of issue.path) section = sectionOf(section?.[key as string]);
      const known = Object.keys(section ?? {});
      return issue.keys
        .map((key) => {
          const name = [...issue.path, key].join('.');
          return `${where([...issue.path, key])}: ${name} is not a known setting${known.length > 0 ? `; did you mean ${closest(key, known)}?` : ''}`;
        })
        .join('\n');
    })
    .join('\n');
}
