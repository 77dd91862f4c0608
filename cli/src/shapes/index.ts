import type { Shapes } from './shape.ts';

/**
 * Loads the shapes of the `--json` output, by the words of their command. Loaded only by `muster schema` and by checks.
 */
export async function loadShapes(): Promise<Shapes> {
  const files = await Promise.all([
    import('./agents.ts'),
    import('./assignments.ts'),
    import('./doctor.ts'),
    import('./fleet.ts'),
    import('./kinds.ts'),
    import('./modules.ts'),
    import('./records.ts'),
    import('./schema.ts'),
    import('./setup.ts'),
    import('./terminal.ts'),
    import('./work.ts'),
  ]);
  return Object.assign({}, ...files.map(({ shapes }) => shapes));
}
