import { parseModule, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { parseModuleState } from '../../host/packages/module-state.ts';
import { diffModule, dnfModule } from './dnf-module.ts';

const declared = (body: Partial<ResourceBodies['dnf-module']>) =>
  ({ type: 'dnf-module', identity: 'nodejs', body: { name: 'nodejs', ...body } }) as ResolvedResource<'dnf-module'>;
const recorded = (stream: string, state: string) =>
  `[nodejs]\nname=nodejs\nstream=${stream}\nprofiles=\nstate=${state}\n`;

test('reads the state that dnf records', () => {
  const read = (text: string | null) => parseModuleState(text, 'nodejs');
  expect(read(recorded('20', 'enabled'))).toEqual({ state: 'enabled', stream: '20' });
  expect(read(recorded('', 'disabled'))).toEqual({ state: 'disabled', stream: null });
  // `dnf module reset` leaves such a file behind.
  expect(read(recorded('', ''))).toEqual({ state: 'default', stream: null });
  for (const text of [null, '', '[php]\nstream=8\nstate=enabled\n', '\0'])
    expect(read(text), String(text)).toEqual({ state: 'default', stream: null });
});

test('reports each field that differs', () => {
  const diff = (body: Partial<ResourceBodies['dnf-module']>, text: string | null, purpose: 'plan' | 'drift' = 'plan') =>
    diffModule(declared(body), { text }, { purpose });
  const enabled = recorded('18', 'enabled');
  expect(diff({ stream: '20' }, null)).toEqual({
    action: 'update',
    changes: [
      { field: 'stream', from: null, to: '20' },
      { field: 'state', from: 'default', to: 'enabled' },
    ],
    diff: null,
  });
  expect(diff({ stream: '20' }, enabled).changes).toEqual([{ field: 'stream', from: '18', to: '20' }]);
  expect(diff({ stream: '18' }, enabled).action).toBe('none');
  expect(diff({ state: 'disabled' }, enabled, 'drift').changes).toEqual([
    { field: 'stream', from: '18', to: null },
    { field: 'state', from: 'enabled', to: 'disabled' },
  ]);
  expect(diff({ ensure: 'absent' }, enabled)).toMatchObject({ action: 'remove', changes: [{}, { to: 'default' }] });
  expect(diff({ ensure: 'absent' }, recorded('', '')).action).toBe('none');
  expect(diffModule(declared({ stream: '9' }), { text: null, refusal: 'missing' }, { purpose: 'plan' }).awaits).toEqual(
    [{ kind: 'packages', message: 'dnf cannot change the module nodejs: missing' }],
  );
});

test('refuses a body that cannot be applied', () => {
  const uploaded = (body: object) =>
    parseModule(
      JSON.stringify({
        name: 'm',
        supports: [{ platform: 'linux' }],
        resources: [{ resource: { 'dnf-module': body } }],
      }),
    ).ok;
  for (const body of [
    { name: '../x', stream: '1' },
    { name: '--all', stream: '1' },
    { name: 'a', stream: 'b:c' },
    { name: 'a' },
  ]) {
    expect(() => dnfModule.check(declared(body)), JSON.stringify(body)).toThrow();
    expect(uploaded(body), JSON.stringify(body)).toBe(false);
  }
  expect(uploaded({ name: 'a', stream: '1', state: 'disabled' })).toBe(false);
  expect(uploaded({ name: 'postgresql', state: 'disabled' })).toBe(true);
  expect(dnfModule.path(declared({ name: '../x' }))).toBeNull();
});
