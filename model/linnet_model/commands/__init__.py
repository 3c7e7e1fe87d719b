"""Commands of linnet-model beside the importers: info, check, convert."""
