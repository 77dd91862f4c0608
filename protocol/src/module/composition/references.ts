import type { Fault } from '../../errors.ts';
import type { ModuleDocument } from '../document.ts';
import type { Instance } from '../instances.ts';
import { quoted, suggestion } from '../nearest.ts';
import { pointer } from '../source/json-pointer.ts';
import type { Path } from '../source/tree.ts';
import { isOptional, readingsOf } from './readings.ts';

class Part {
  readonly keysOf: ReadonlyMap<string, readonly string[]>;
  readonly #module: ModuleDocument;
  #declared: ReadonlySet<string> | undefined;

  constructor(module: ModuleDocument, instances: readonly Instance[]) {
    this.#module = module;
    this.keysOf = keysByDeclaredId(instances);
  }

  /** IDs that the module declares, including those of resources that do not apply to the agent. */
  get declared(): ReadonlySet<string> {
    this.#declared ??= new Set(this.#module.resources.flatMap(({ id }) => id ?? []));
    return this.#declared;
  }
}

/** Converts the references between the modules of a desired state to resource keys. */
export class References {
  readonly faults: Fault[] = [];
  readonly #parts: ReadonlyMap<string, Part>;

  constructor(parts: readonly { module: ModuleDocument; instances: readonly Instance[] }[]) {
    this.#parts = new Map(parts.map(({ module, instances }) => [module.name, new Part(module, instances)]));
  }

  /**
   * Returns a function that converts the references of one module to distinct keys. A reference to a resource that does
   * not apply to this agent has no key. Errors are reported at the given path, or not at all.
   */
  from(module: ModuleDocument): (references: readonly string[], at: Path | null) => string[] {
    const own = this.#parts.get(module.name)?.keysOf;
    return (references, at) => {
      // Skips empty lists, because most lists are empty and this function dominates the resolution time.
      if (references.length === 0) return [];
      const keys = references.flatMap(
        (reference, index) => own?.get(reference) ?? this.#find(module, reference, at, index),
      );
      return [...new Set(keys)];
    };
  }

  fault(module: ModuleDocument, path: Path, message: string): void {
    this.faults.push({
      path: pointer(['modules', module.name, ...path]),
      message: `module "${module.name}": ${message}`,
    });
  }

  #find(module: ModuleDocument, reference: string, at: Path | null, index: number): readonly string[] {
    const readings = readingsOf(reference).map(({ module: of, id }) => ({
      id,
      of,
      part: this.#parts.get(of ?? module.name),
    }));
    const found = readings.find(({ part, id }) => part?.declared.has(id) === true);
    if (found !== undefined) return found.part?.keysOf.get(found.id) ?? [];
    if (isOptional(reference) || at === null) return [];
    this.fault(module, typeof at.at(-1) === 'number' ? at : [...at, index], whyMissing(reference, readings));
    return [];
  }
}

function keysByDeclaredId(instances: readonly Instance[]): Map<string, string[]> {
  const keysOf = new Map<string, string[]>();
  for (const { declaredId, key } of instances) {
    if (declaredId === null) continue;
    const keys = keysOf.get(declaredId);
    if (keys === undefined) keysOf.set(declaredId, [key]);
    else keys.push(key);
  }
  return keysOf;
}

function whyMissing(
  reference: string,
  readings: readonly { of: string | null; id: string; part: Part | undefined }[],
): string {
  const inModule = readings.find(({ of, part }) => of !== null && part !== undefined);
  const unless = `write ${quoted(`${reference}?`)} if it may be missing`;
  if (inModule?.part !== undefined) {
    const hint = suggestion(inModule.id, [...inModule.part.declared].slice(0, 100));
    return `the module ${quoted(inModule.of ?? '')} has no resource with the id ${quoted(inModule.id)}; ${unless}${hint}`;
  }
  const of = readings.find((reading) => reading.of !== null)?.of ?? '';
  return `${quoted(reference)} names a resource of the module ${quoted(of)}, which this agent does not have: assign it, add it to \`requires\`, or ${unless}`;
}
