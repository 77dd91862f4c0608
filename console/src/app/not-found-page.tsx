import { Link } from '@tanstack/react-router';
import { MapPinOff } from 'lucide-react';
import { buttonClasses } from '../parts/button.tsx';
import { Page } from '../parts/page.tsx';

export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <div className="flex flex-col items-center gap-3 px-6 py-12 text-center">
        <MapPinOff aria-hidden="true" className="size-7 text-muted" strokeWidth={1.4} />
        <p className="text-muted text-sm">Check the address, or go to the overview.</p>
        <Link to="/" className={buttonClasses('primary')}>
          Go to the overview
        </Link>
      </div>
    </Page>
  );
}
