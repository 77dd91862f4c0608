import type { AgentFacts } from '../agent-facts.ts';
import { withRequiredLayers } from '../composition/requires.ts';
import type { Json, Merge, ModuleDocument } from '../document.ts';
import { parameterValue, unknownParameter } from '../parameters.ts';
import { combine, conflictText, type Layer, type Layers } from './layers.ts';

/** A parameter of an agent's module, with its value and the layers of the value. */
export interface ValueReport {
  readonly module: string;
  readonly parameter: string;
  readonly merge: Merge;
  /** Null if the parameter has no value or has an error. */
  readonly value: Json;
  /** Layers that contribute to the value, from high to low; if there are errors, all layers. */
  readonly layers: readonly Layer[];
  /** Layers that do not contribute to the value, from high to low. */
  readonly overrode: readonly Layer[];
  readonly faults: readonly string[];
}

/**
 * Lists the parameters of modules with their values for an agent.
 * @param given layers from assignments, by module and parameter
 */
export function valueReports(modules: readonly ModuleDocument[], given: Layers, agent: AgentFacts): ValueReport[] {
  const layers = withRequiredLayers(modules, given);
  return modules.flatMap(({ name: module, parameters }) => {
    const ofModule = Object.hasOwn(layers, module) ? (layers[module] ?? {}) : {};
    const undeclared = Object.keys(ofModule).filter((name) => !Object.hasOwn(parameters, name));
    return [
      ...Object.entries(parameters).map(([parameter, declaration]): ValueReport => {
        const own = Object.hasOwn(ofModule, parameter) ? (ofModule[parameter] ?? []) : [];
        const found = parameterValue(parameter, declaration, own, agent);
        const { merge } = declaration;
        const conflict = found.combined?.conflict ?? null;
        const faults = [
          ...found.faults.map(({ message }) => message),
          ...(conflict === null ? [] : [conflictText(module, parameter, conflict)]),
        ];
        if (faults.length > 0) return { module, parameter, merge, ...withoutValue(own), faults };
        const { value = null, layers = [], overrode = [] } = found.combined ?? {};
        return { module, parameter, merge, value, layers, overrode, faults };
      }),
      ...undeclared.map((parameter): ValueReport => {
        const faults = [unknownParameter(parameters, parameter).message];
        return { module, parameter, merge: 'replace', ...withoutValue(ofModule[parameter] ?? []), faults };
      }),
    ];
  });
}

function withoutValue(given: readonly Layer[]): Pick<ValueReport, 'value' | 'layers' | 'overrode'> {
  if (given.length === 0) return { value: null, layers: [], overrode: [] };
  const { layers, overrode } = combine('replace', given);
  return { value: null, layers: [...layers, ...overrode], overrode: [] };
}
