import { Page } from '../../parts/page.tsx';

export function EnrolmentPage() {
  return <Page title="Enrolment">{null}</Page>;
}
