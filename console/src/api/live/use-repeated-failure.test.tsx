import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { render, screen, waitFor } from '@testing-library/react';
import { expect, test } from 'vitest';
import { useRepeatedFailure } from './use-repeated-failure.ts';

let fails = true;
function Page() {
  const failure = useRepeatedFailure();
  useQuery({
    queryKey: ['agents'],
    queryFn: async () => {
      if (fails) throw new Error('the database does not answer');
      return [];
    },
    ...{ retry: true, retryDelay: 1 },
  });
  return <p>{failure?.message ?? 'fine'}</p>;
}

test('reports why requests fail repeatedly, until they succeed', async () => {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Page />
    </QueryClientProvider>,
  );
  expect(screen.getByText('fine')).toBeTruthy();
  expect(await screen.findByText('the database does not answer')).toBeTruthy();
  fails = false;
  await waitFor(() => expect(screen.getByText('fine')).toBeTruthy());
});
