import type { Shapes } from './shape.ts';

/** Shapes of the `--json` output by noun. Imported only by `muster schema` and checks. */
const files: Readonly<Record<string, () => Promise<{ shapes: Shapes }>>> = {
  agents: () => import('./agents.ts'),
  modules: () => import('./modules.ts'),
  plan: () => import('./work.ts'),
  apply: () => import('./work.ts'),
  overview: () => import('./work.ts'),
  reconcile: () => import('./work.ts'),
  drift: () => import('./work.ts'),
  operations: () => import('./work.ts'),
  assignments: () => import('./assignments.ts'),
  runs: () => import('./assignments.ts'),
  discover: () => import('./fleet.ts'),
  secrets: () => import('./fleet.ts'),
  'enrollment-tokens': () => import('./fleet.ts'),
  notifications: () => import('./fleet.ts'),
  channels: () => import('./fleet.ts'),
  kinds: () => import('./kinds.ts'),
  maintenance: () => import('./fleet.ts'),
  terminal: () => import('./terminal.ts'),
  status: () => import('./setup.ts'),
  login: () => import('./setup.ts'),
  logout: () => import('./setup.ts'),
  sessions: () => import('./setup.ts'),
  operator: () => import('./setup.ts'),
  profile: () => import('./setup.ts'),
  tags: () => import('./records.ts'),
  selectors: () => import('./records.ts'),
  metrics: () => import('./records.ts'),
  state: () => import('./records.ts'),
  audit: () => import('./records.ts'),
  events: () => import('./records.ts'),
  settings: () => import('./records.ts'),
  'web-login': () => import('./records.ts'),
  completion: () => import('./schema.ts'),
  doctor: () => import('./doctor.ts'),
  schema: () => import('./schema.ts'),
};

/**
 * Loads the shapes by the words of their command.
 * @param noun loads only the shapes of this noun; undefined loads all
 */
export async function loadShapes(noun?: string): Promise<Shapes> {
  const load = noun === undefined ? undefined : files[noun];
  if (noun !== undefined && load === undefined) return {};
  const loaded = await Promise.all((load ? [load] : Object.values(files)).map((each) => each()));
  return Object.assign({}, ...loaded.map(({ shapes }) => shapes));
}
