"""Commands of linnet-model beside the importers: fetch, info, check, convert."""
