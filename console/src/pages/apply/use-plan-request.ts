import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';

/**
 * Requests a plan when a dialog opens, unless one exists. If the dialog closes, cancels the plan, even if the response
 * to the request has not arrived yet.
 * @param start returns the started plan; ends early if the signal is aborted
 * @param cancel cancels a started plan unless it has ended
 */
export function usePlanRequest<Started>(
  hasPlan: boolean,
  start: (closed: AbortSignal) => Promise<Started>,
  cancel: (started: Started) => void,
) {
  const [closed] = useState(() => new AbortController());
  const request = useMutation({
    mutationFn: async () => {
      const started = await start(closed.signal);
      if (closed.signal.aborted) cancel(started);
      return started;
    },
  });
  const { mutate } = request;
  const isStarted = useRef(hasPlan);
  useEffect(() => {
    // React runs effects twice in development.
    if (isStarted.current) return;
    isStarted.current = true;
    mutate();
  }, [mutate]);
  return {
    request,
    again: () => mutate(),
    abandon: () => {
      closed.abort();
      if (request.data !== undefined) cancel(request.data);
    },
  };
}
