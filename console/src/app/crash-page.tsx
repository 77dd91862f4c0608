import { Failure } from '../parts/states.tsx';

/** A page that broke, or whose code could not be loaded: the orchestrator may have been upgraded meanwhile. */
export function CrashPage({ error, reset }: { readonly error: Error; readonly reset: () => void }) {
  const stale = /dynamically imported module|module script/i.test(error.message);
  return (
    <Failure
      title={stale ? 'This page could not be loaded' : 'This page broke'}
      error={
        stale
          ? new Error('The orchestrator may have been upgraded or restarted. Load the console anew to go on.')
          : error
      }
      retry={stale ? () => window.location.reload() : reset}
    />
  );
}
