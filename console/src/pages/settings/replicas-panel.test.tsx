import { listReplicas, type Replica } from '@muster/protocol/http';
import { screen, waitFor } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Replicas } from './replicas-panel.tsx';

const [replica] = listReplicas.example.answer as [Replica];

test('shows the state of each replica', async () => {
  const api = fakeApi();
  const other = { ...replica, name: 'b', incarnation: 'b', this_replica: false, ready: false };
  api.answer(listReplicas, [replica, other]);
  await renderPart(<Replicas />);
  expect(await screen.findByText('this one')).toBeTruthy();
  expect(screen.getByText('Ready')).toBeTruthy();
  expect(screen.getByText('Not ready')).toBeTruthy();
  expect(screen.getAllByText('5f5f5f5f')).toHaveLength(2);
});

test('shows nothing for an orchestrator without replicas', async () => {
  const api = fakeApi();
  api.answer(listReplicas, []);
  await renderPart(<Replicas />);
  await waitFor(() => expect(api.received(listReplicas)).toHaveLength(1));
  expect(screen.queryByText('Replicas')).toBeNull();
});
