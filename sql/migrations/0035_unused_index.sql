-- No statement looks claims up by their organisation alone, and no organisation is ever deleted.
drop index app.domain_claims_organisation_id;
