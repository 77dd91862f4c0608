import { useEffect } from 'react';
import { Failure } from '../parts/states.tsx';
import { removeOutlines } from './shell.tsx';

/**
 * Shown if rendering a page throws an error, or if the page's code cannot be loaded because the orchestrator was
 * upgraded.
 */
export function CrashPage({ error, reset }: { readonly error: Error; readonly reset: () => void }) {
  // The shell removes the loading outlines, but an error may occur before it renders.
  useEffect(removeOutlines, []);
  const stale = /dynamically imported module|module script/i.test(error.message);
  return (
    <Failure
      title={stale ? 'This page could not be loaded' : 'This page failed because of an error'}
      error={
        stale
          ? new Error('The orchestrator may have been upgraded or restarted. Reload the console to continue.')
          : error
      }
      retry={stale ? () => window.location.reload() : reset}
      list={{ to: '/', label: 'Go to the overview' }}
    />
  );
}
