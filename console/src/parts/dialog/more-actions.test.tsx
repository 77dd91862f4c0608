import { screen } from '@testing-library/react';
import { expect, onTestFinished, test, vi } from 'vitest';

/** Renders two actions. Loads the modules again for the width of the screen. */
async function render(hidden: string) {
  vi.resetModules();
  vi.doMock('../table/screen-widths.ts', () => ({ useHiddenWidths: () => hidden }));
  onTestFinished(() => {
    vi.doUnmock('../table/screen-widths.ts');
    vi.resetModules();
  });
  const { fakeApi } = await import('../../../test/fake-api.ts');
  const { renderPart } = await import('../../../test/render.tsx');
  const { MoreActions } = await import('./more-actions.tsx');
  fakeApi();
  const onSelect = vi.fn();
  const actions = [
    { label: 'Export', icon: null, onSelect },
    { label: 'Verify', icon: null, onSelect: () => {}, busy: true },
  ];
  return { ...(await renderPart(<MoreActions actions={actions} />)), onSelect };
}

test('shows each action as a button on a wide screen', async () => {
  const { user, onSelect } = await render('');
  const buttons = screen.getAllByRole('button') as HTMLButtonElement[];
  expect(buttons.map(({ textContent, disabled }) => [textContent, disabled])).toEqual([
    ['Export', false],
    ['Verify', true],
  ]);
  await user.click(screen.getByRole('button', { name: 'Export' }));
  expect(onSelect).toHaveBeenCalledOnce();
});

test('shows the actions with their labels in a menu on a phone', async () => {
  const { user, onSelect } = await render('sm md lg xl 2xl');
  await user.click(screen.getByRole('button', { name: 'More' }));
  expect(screen.getByRole('menuitem', { name: 'Verify' }).getAttribute('aria-disabled')).toBe('true');
  await user.click(screen.getByRole('menuitem', { name: 'Export' }));
  expect(onSelect).toHaveBeenCalledOnce();
});
