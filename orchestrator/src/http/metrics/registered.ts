import { Counter, Gauge, type Registry } from 'prom-client';

export type Registers = [Registry];

/** Creates a gauge that is set on each scrape. */
export const gauge = <L extends string>(registers: Registers, name: string, help: string, labelNames: L[] = []) =>
  new Gauge<L>({ name, help, labelNames, registers });

/** Creates a counter whose total is maintained by another module. */
export function total<L extends string>(registers: Registers, name: string, help: string, labelNames: L[] = []) {
  const counter = new Counter<L>({ name, help, labelNames, registers });
  return {
    set(value: number): void {
      counter.reset();
      counter.inc(value);
    },
    setEach(values: readonly (readonly [Record<L, string>, number])[]): void {
      counter.reset();
      for (const [labels, value] of values) counter.inc(labels, value);
    },
  };
}
