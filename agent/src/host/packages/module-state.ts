/** Parses the files in which dnf records the state of its modules. */

/** Returns the path of the file in which dnf records a module's state. */
export const moduleFile = (name: string): string => `/etc/dnf/modules.d/${name}.module`;

/** What dnf does with a module. With `default`, the repositories decide. */
export type ModuleState =
  | { state: 'default' | 'disabled'; stream: null }
  /** The profiles are those whose packages dnf installed with the module. */
  | { state: 'enabled'; stream: string };

/** @param text content of the file; null if it does not exist */
export function parseModuleState(text: string | null, name: string): ModuleState {
  let isInSection = false;
  const values = new Map<string, string>();
  for (const line of (text ?? '').split('\n')) {
    const section = /^\[(.*)\]\s*$/.exec(line)?.[1];
    if (section !== undefined) isInSection = section === name;
    const [, key, value = ''] = /^([a-z]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (isInSection && key !== undefined) values.set(key, value);
  }
  const state = values.get('state');
  const stream = values.get('stream') ?? '';
  if (state === 'disabled') return { state, stream: null };
  return state === 'enabled' && stream !== '' ? { state, stream } : { state: 'default', stream: null };
}
