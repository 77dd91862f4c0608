import type { ModuleDocument } from '../document.ts';
import { quoted } from '../nearest.ts';
import { stableOrder } from '../order.ts';
import type { Layer, Layers } from '../parameters/layers.ts';
import { moduleValueFaults } from '../parameters/value-checks.ts';
import type { Path } from '../source/tree.ts';

/** The modules that each module requires, by name. Modules without requirements may be absent. */
export type Requires = ReadonlyMap<string, readonly string[]>;

export const requiresOf = (modules: readonly ModuleDocument[]): Requires =>
  new Map(modules.map(({ name, requires }) => [name, requires.map(({ module }) => module)]));

/**
 * Adds the modules that the given modules require, directly or indirectly.
 * @returns each module once, after the modules that it requires; otherwise in the given order
 */
export function withRequired(names: readonly string[], requires: Requires): string[] {
  if (!names.some((name) => (requires.get(name)?.length ?? 0) > 0)) return [...new Set(names)];
  const all = new Set<string>();
  // Finishes a module once everything that it requires is in `all`. Does not use recursion, because chains can be long.
  for (const name of names) {
    const open = [name];
    const entered = new Set<string>();
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const missing = entered.has(last)
        ? []
        : (requires.get(last) ?? []).filter((each) => !all.has(each) && !entered.has(each));
      entered.add(last);
      if (missing.length > 0) open.push(...missing.toReversed());
      else {
        open.pop();
        all.add(last);
      }
    }
  }
  return [...all];
}

/**
 * Finds modules that require each other.
 * @returns their names, starting and ending with the same name; null if there are none
 */
export function requiredCycle(names: readonly string[], requires: Requires): string[] | null {
  const all = withRequired(names, requires);
  const indexOf = new Map(all.map((name, index) => [name, index]));
  const sorted = stableOrder(
    all.map((name) => (requires.get(name) ?? []).flatMap((required) => indexOf.get(required) ?? [])),
  );
  if (sorted.ok) return null;
  const members = sorted.cycle.map((index) => all[index] as string);
  const first = Math.max(0, members.indexOf(names[0] ?? ''));
  return [...members.slice(first), ...members.slice(0, first), members[first] as string];
}

/**
 * Checks the requirements of a module.
 * @param requires the requirements of other modules
 * @param documentOf returns a required module; undefined if it is unknown
 * @returns the errors, with their paths in the module
 */
export function requirementFaults(
  module: ModuleDocument,
  requires: Requires,
  documentOf: (name: string) => ModuleDocument | undefined,
): { path: Path; message: string }[] {
  const edges = new Map([...requires, ...requiresOf([module])]);
  const cycle = requiredCycle([module.name], edges);
  if (cycle?.includes(module.name))
    return [{ path: ['requires'], message: `modules require each other: ${cycle.join(' -> ')}` }];
  return module.requires.flatMap(({ module: name, with: values }, index) => {
    const document = documentOf(name);
    if (document === undefined) return [];
    return moduleValueFaults(document, values).map(({ path, message }) => ({
      path: ['requires', index, 'with', ...path],
      message: `module ${quoted(name)}: ${message}`,
    }));
  });
}

/** Precedence of the values in `with`. Lower than the default precedence of assignments. */
const requiredPrecedence = -1;

/**
 * Adds the values that modules set for the modules they require. Their layers come before other layers with the same
 * precedence.
 */
export function withRequiredLayers(modules: readonly ModuleDocument[], layers: Layers): Layers {
  if (modules.every(({ requires }) => requires.every(({ with: values }) => Object.keys(values).length === 0)))
    return layers;
  const all = new Map<string, Map<string, Layer[]>>();
  const add = (module: string, parameter: string, added: readonly Layer[]): void => {
    const ofModule = all.get(module) ?? new Map<string, Layer[]>();
    all.set(module, ofModule);
    ofModule.set(parameter, [...(ofModule.get(parameter) ?? []), ...added]);
  };
  const names = new Set(modules.map(({ name }) => name));
  for (const { name, requires } of modules)
    for (const { module, with: values } of requires)
      for (const [parameter, value] of Object.entries(values))
        if (names.has(module))
          add(module, parameter, [{ value, from: 'requires', name, precedence: requiredPrecedence }]);
  for (const [module, values] of Object.entries(layers))
    for (const [parameter, given] of Object.entries(values)) add(module, parameter, given);
  return Object.fromEntries([...all].map(([module, values]) => [module, Object.fromEntries(values)]));
}
