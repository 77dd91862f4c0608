import type { State } from '@muster/protocol/http';

type Entry = State['applied'][number];
export type Believed = Entry & { readonly standing: 'applied' | 'unapplied' | 'pending_removal' };

export interface BelievedModule {
  readonly module: string;
  readonly entries: readonly Believed[];
}

/** What is believed to be on a machine by module, what is not as it should be before the rest. Pure. */
export function believedByModule({ applied, unapplied, pending_removals }: State): readonly BelievedModule[] {
  const groups = new Map<string, Believed[]>();
  const take = (entries: readonly Entry[], standing: Believed['standing']) => {
    for (const entry of entries) {
      const group = groups.get(entry.module) ?? [];
      if (group.length === 0) groups.set(entry.module, group);
      group.push({ ...entry, standing });
    }
  };
  take(unapplied, 'unapplied');
  take(pending_removals, 'pending_removal');
  take(applied, 'applied');
  return [...groups].map(([module, entries]) => ({ module, entries })).sort((a, b) => (a.module < b.module ? -1 : 1));
}
