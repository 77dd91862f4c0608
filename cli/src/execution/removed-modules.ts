import type { Client } from '@muster/protocol/client';
import { listModules } from '@muster/protocol/http';

/** Returns the modules that were removed from the orchestrator and therefore cannot be specified for an apply. */
export async function removedModules(call: Client, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return [];
  const stored = new Set((await call(listModules, { all: true })).map(({ name }) => name));
  return names.filter((name) => !stored.has(name));
}
