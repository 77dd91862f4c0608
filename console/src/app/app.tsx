import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { serverClock } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Toaster } from '../parts/dialog/toast.tsx';
import { setClock } from '../parts/time.tsx';
import { router } from './routes.tsx';
import { useShownTheme } from './theme.ts';

setClock(serverClock.now);

export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
      <Toaster theme={useShownTheme()} />
    </QueryClientProvider>
  );
}
