import { Link } from '@tanstack/react-router';
import { buttonClasses } from '../parts/button.tsx';
import { Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';

export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <Empty
        title="No page exists at this address"
        action={
          <Link to="/" className={buttonClasses('primary')}>
            Go to the overview
          </Link>
        }
      >
        It may have been removed, or the link may be incomplete.
      </Empty>
    </Page>
  );
}
