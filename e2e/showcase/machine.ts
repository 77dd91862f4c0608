import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage } from '@muster/protocol/wire';
import { createTwoFilesPatch } from 'diff';

type Body = Record<string, unknown>;
type Results = { results: ResourceResult[]; failed: string | null };

interface Applied {
  resource: ResolvedResource;
  /** The resource's current fields on the machine. */
  now: Body;
}

/** Fields that identify a resource, and so do not count as changes. */
const naming = new Set(['path', 'name', 'program', 'check', 'apply', 'undo', 'manages']);

/** A simulated machine that executes operations in memory. */
export class SimulatedMachine {
  readonly #applied = new Map<string, Applied>();
  /** Error messages for failing resources, by identity. */
  readonly #faults = new Map<string, string>();

  /** Makes a resource fail with this message; null makes it succeed again. */
  fault(identity: string, message: string | null): void {
    if (message === null) this.#faults.delete(identity);
    else this.#faults.set(identity, message);
  }

  /**
   * Simulates a manual change to an applied resource.
   * @returns the resource's key; null if no such resource is applied
   */
  tamper(identity: string, change: Body): string | null {
    for (const [key, applied] of this.#applied)
      if (applied.resource.identity === identity) {
        applied.now = { ...applied.now, ...change };
        return key;
      }
    return null;
  }

  /** Executes a plan, an apply, or a drift check. @returns the results, and the error of the first failed resource */
  execute({ kind, resources, keep_modules }: OperationMessage): Results {
    if (kind === 'drift')
      return { results: [...this.#applied.values()].map((applied) => this.#compared(applied)), failed: null };
    const results: ResourceResult[] = [];
    let failed: string | null = null;
    for (const resource of resources) {
      const applied = this.#applied.get(resource.key);
      const changes = differences(applied?.now ?? null, resource.body as Body);
      const fault = this.#faults.get(resource.identity);
      const moved = changes.length > 0;
      const result = {
        ...blank(resource),
        ...(moved ? { action: applied ? ('update' as const) : ('create' as const), changes } : {}),
        ...(moved ? { diff: diffOf(resource.identity, applied?.now ?? null, resource.body as Body) } : {}),
        corrective:
          moved && applied !== undefined && differences(applied.now, applied.resource.body as Body).length > 0,
        duration_ms: moved ? 4 + (resource.identity.length % 37) : 1,
      };
      if (moved && resource.type === 'script') result.action = 'run';
      if (!moved) results.push(result);
      else if (kind === 'plan') results.push({ ...result, status: 'would_change' });
      else if (failed !== null && resource.depends_on.length > 0)
        results.push({ ...result, status: 'skipped', message: 'a resource that it depends on has failed' });
      else if (fault !== undefined) {
        failed ??= `${resource.identity}: ${fault}`;
        results.push({ ...result, status: 'failed', message: fault });
      } else {
        results.push({ ...result, status: 'changed' });
        this.#applied.set(resource.key, { resource, now: { ...(resource.body as Body) } });
      }
    }
    const declared = new Set(resources.map(({ key }) => key));
    for (const [key, applied] of [...this.#applied].reverse()) {
      if (declared.has(key) || keep_modules.includes(applied.resource.module)) continue;
      const removal = { ...blank(applied.resource), action: 'remove' as const, duration_ms: 2 };
      results.push({ ...removal, status: kind === 'plan' ? 'would_change' : 'changed' });
      if (kind === 'apply') this.#applied.delete(key);
    }
    return { results, failed };
  }

  #compared({ resource, now }: Applied): ResourceResult {
    const desired = resource.body as Body;
    const changes = differences(now, desired);
    if (changes.length === 0) return blank(resource);
    const diff = diffOf(resource.identity, now, desired);
    return { ...blank(resource), action: 'update', status: 'would_change', changes, diff, corrective: true };
  }
}

const blank = ({ module, id, type, identity, sensitive_fields }: ResolvedResource): ResourceResult => ({
  ...{ module, id, type, identity },
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 1,
  sensitive: sensitive_fields.length > 0,
});

const shown = (value: unknown): string | null => {
  if (value === undefined || value === null) return null;
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200);
};

function differences(now: Body | null, desired: Body): ResourceResult['changes'] {
  const fields = Object.keys(desired).filter((field) => !naming.has(field));
  const changes = fields
    .filter((field) => now === null || JSON.stringify(now[field]) !== JSON.stringify(desired[field]))
    .map((field) => {
      if (field !== 'content') return { field, from: shown(now?.[field]), to: shown(desired[field]) };
      return { field, from: now === null ? null : sizeOf(now.content), to: sizeOf(desired.content) };
    });
  return now === null ? [{ field: 'ensure', from: 'absent', to: 'present' }, ...changes] : changes;
}

const sizeOf = (content: unknown): string => `${String(content ?? '').length} bytes`;

function diffOf(identity: string, now: Body | null, desired: Body): string | null {
  if (typeof desired.content !== 'string' || now?.content === desired.content) return null;
  const before = typeof now?.content === 'string' ? now.content : '';
  const patch = createTwoFilesPatch(identity, identity, before, desired.content, '', '', { context: 3 });
  return patch.replace(/^Index: .*\n=+\n/, '').replaceAll(/^(---|\+\+\+) (.*?)\t?$/gm, '$1 $2');
}
